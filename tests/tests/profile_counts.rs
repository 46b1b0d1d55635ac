//! Hit counters and timers: nothing while they are off, all of it while they are on, from all threads,
//! and stacks that add up.

use std::thread;

use immediate::profile::{self, PointReport, RING};
use immediate::{Immediate, immediate, set_named};

#[immediate(name = "profile.outer")]
static OUTER: Immediate<bool> = Immediate::new(false);
#[immediate(name = "profile.inner")]
static INNER: Immediate<bool> = Immediate::new(false);
#[immediate(name = "profile.word")]
static WORD: Immediate<bool> = Immediate::new(false);
#[immediate(name = "profile.many")]
static MANY: Immediate<bool> = Immediate::new(true);

const THREADS: u64 = 4;
const ROUNDS: u64 = 200;

fn inner(fails: bool) -> Result<u64, ()> {
    profile::timed!(INNER, {
        profile::hit!(WORD);
        // Leaves the scope from the middle.
        if fails {
            return Err(());
        }
        Ok(1)
    })
}

fn outer() -> u64 {
    profile::timed!(OUTER, inner(false).unwrap_or(0) + inner(true).unwrap_or(7))
}

fn run() {
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..ROUNDS).for_each(|_| assert_eq!(outer(), 8)));
        }
    });
}

fn point(name: &str) -> Option<PointReport> {
    profile::report().points.into_iter().find(|point| point.name == name)
}

#[test]
fn switched_by_name() {
    run();
    for name in ["profile.outer", "profile.inner", "profile.word"] {
        assert_eq!(point(name), None, "{name} is off");
        assert_eq!(profile::hits(name), None);
    }
    if immediate_tests::has_sites() {
        assert!(OUTER.site_count() > 0);
    }

    set_named(&[("profile.outer", "on"), ("profile.inner", "on"), ("profile.word", "on")])
        .expect("nothing is in the way");
    run();
    let report = profile::report();
    assert_eq!(report.lost, 0);
    let (outer, inner) = (point("profile.outer"), point("profile.inner"));
    let (outer, inner) = (outer.expect("timed"), inner.expect("timed"));
    assert_eq!((outer.timed, inner.timed), (THREADS * ROUNDS, 2 * THREADS * ROUNDS));
    assert_eq!(point("profile.word").expect("counted").hits, 2 * THREADS * ROUNDS);
    assert_eq!(profile::hits("profile.word"), Some(2 * THREADS * ROUNDS));
    assert!(outer.min_nanos <= outer.median_nanos && outer.median_nanos <= outer.p99_nanos);
    assert!(outer.p99_nanos <= outer.max_nanos && outer.max_nanos <= outer.total_nanos * 2);
    // An outer scope lasts at least as long as what it holds.
    assert!(outer.total_nanos >= inner.total_nanos, "{outer:?} {inner:?}");
    let folded = report.folded();
    let stacks: Vec<&str> = folded.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(stacks, ["profile.outer", "profile.outer;profile.inner"]);

    // The inner one alone is a stack of its own, and the outer one is off again.
    profile::reset();
    set_named(&[("profile.outer", "off")]).expect("nothing is in the way");
    run();
    let report = profile::report();
    assert!(report.folded().starts_with("profile.inner "), "{}", report.folded());
    assert_eq!(point("profile.outer").expect("known").timed, 0);
    assert_eq!(point("profile.inner").expect("timed").timed, 2 * THREADS * ROUNDS);

    // A full buffer is told, and the next report begins anew.
    profile::reset();
    thread::spawn(|| (0..RING + 10).for_each(|_| profile::timed!(MANY, ()))).join().expect("ran");
    let report = profile::report();
    let kept = point("profile.many").expect("timed").timed;
    // One event of the ring told the stack.
    assert_eq!((kept, report.lost), (RING as u64 - 1, 11));
    assert!(report.to_string().contains("11 scopes were lost"), "{report}");
    assert_eq!(profile::report().lost, 0);
}
