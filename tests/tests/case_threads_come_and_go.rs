//! Threads are made and joined without pause while variables are set. What would go wrong: the C
//! library blocks all signals for a moment while it makes a thread, and a set takes that for good
//! and refuses; or a new thread, not yet listed, runs a site that traps and cannot take it.

use std::sync::atomic::Ordering::SeqCst;

use immediate::{Batch, Immediate, Protocol, immediate, immediate_if, immediate_read};
use immediate_tests::child;
use immediate_tests::counter::AtomicU64;
use immediate_tests::scatter::{gather64, scatter64};
use immediate_tests::torture::{self, Bound, Window};

#[immediate]
static WIDE: Immediate<u64> = Immediate::new(0);
#[immediate]
static ODD: Immediate<bool> = Immediate::new(false);

static WINDOW: Window = Window::new();

immediate_tests::scenarios!(churn);

fn look() {
    let (value, from, to) = WINDOW.read(|| immediate_read!(WIDE));
    let generation = gather64(value).expect("no mixture");
    assert!((from..=to).contains(&generation), "{generation} in {from}..={to}");
    std::hint::black_box(immediate_if!(ODD));
}

fn churn() {
    let made = AtomicU64::new(0);
    let maker = |_| {
        || {
            let threads: [_; 3] = std::array::from_fn(|_| {
                std::thread::spawn(|| {
                    for _ in 0..50 {
                        look();
                    }
                })
            });
            made.fetch_add(3, SeqCst);
            look();
            for thread in threads {
                thread.join().expect("a thread that reads");
            }
        }
    };
    torture::run("churn", Bound::new(3_000, 10), 4, maker, |generation| {
        WINDOW.set(generation, || {
            let batch = Batch::new().set(&WIDE, scatter64(generation));
            if let Err(error) = batch.set(&ODD, generation % 2 == 1).apply() {
                panic!("set {generation}: {error}");
            }
        });
    });
    println!("{} threads made", made.into_inner());
    if immediate_tests::has_sites() {
        println!("{}", immediate::status().last.expect("code was changed").protocol);
        assert_ne!(immediate::status().last.expect("code was changed").protocol, Protocol::Single);
    }
}

#[test]
fn sets_succeed_among_threads_that_come_and_go() {
    child::succeed("churn", &[]);
    child::succeed("churn", &[("IMMEDIATE_PROTOCOL", "int3")]);
    child::succeed("churn", &[("IMMEDIATE_PROTOCOL", "quadword")]);
}
