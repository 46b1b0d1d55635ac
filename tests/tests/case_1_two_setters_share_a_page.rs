//! Two threads set two variables whose sites share a page, while two more run the sites. What would
//! go wrong: one setter takes away the right to write while the other is writing (a fault), or the
//! page stays writable in the end.
//!
//! CASES 1 (seen in safetyhook, issue 102).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use immediate::{Immediate, immediate, immediate_read};
use immediate_tests::scatter::{WIDE_GENERATIONS, Wide, gather_wide, scatter_wide};
use immediate_tests::torture::Bound;
use immediate_tests::{has_sites, maps};

#[immediate]
static LEFT: Immediate<Wide> = Immediate::new(0);
#[immediate]
static RIGHT: Immediate<Wide> = Immediate::new(0);

/// Four sites in turn: wherever a page may end between them, two neighbours share one.
#[inline(never)]
fn read_both() -> [Wide; 2] {
    let first = [immediate_read!(LEFT), immediate_read!(RIGHT)];
    let second = [immediate_read!(LEFT), immediate_read!(RIGHT)];
    for (first, second) in first.into_iter().zip(second) {
        assert!(gather_wide(first) <= gather_wide(second), "{first:#x}, then {second:#x}");
    }
    second
}

#[test]
fn the_page_ends_as_it_began() {
    let has_sites = has_sites();
    if has_sites {
        let (left, right) = (maps::sites_of(LEFT.name()), maps::sites_of(RIGHT.name()));
        let page = |address: &usize| address / 4096;
        assert!(left.iter().any(|one| right.iter().any(|other| page(one) == page(other))));
        maps::assert_text_is_read_only(left[0]);
    }
    let bound = Bound::new(50_000.min(WIDE_GENERATIONS - 1), 15);
    let (deadline, stop) = (bound.deadline(), AtomicBool::new(false));
    let (sets, reads) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let setters = [&LEFT, &RIGHT].map(|variable| {
            let sets = &sets;
            scope.spawn(move || {
                let mut generation = 0;
                while generation < bound.updates && std::time::Instant::now() < deadline {
                    generation += 1;
                    variable.set(scatter_wide(generation)).expect("every thread can trap");
                    // Nobody else sets this one.
                    let index = usize::from(std::ptr::eq(variable, &RIGHT));
                    assert_eq!(gather_wide(read_both()[index]), Some(generation));
                    sets.fetch_add(1, SeqCst);
                }
            })
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = [0; 2];
                while !stop.load(SeqCst) {
                    for (value, last) in read_both().into_iter().zip(&mut last) {
                        let generation = gather_wide(value).expect("no mixture");
                        assert!(generation >= *last, "{generation} after {last}");
                        *last = generation;
                    }
                    reads.fetch_add(2, SeqCst);
                }
            });
        }
        let ended = setters.map(std::thread::ScopedJoinHandle::join);
        stop.store(true, SeqCst);
        assert!(ended.iter().all(Result::is_ok));
    });
    println!("{} sets, {} reads", sets.into_inner(), reads.into_inner());
    if has_sites {
        maps::assert_text_is_read_only(maps::sites_of(LEFT.name())[0]);
    }
}
