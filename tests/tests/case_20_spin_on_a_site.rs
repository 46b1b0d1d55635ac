//! A thread spins on an immediate until another sets it; two reads around a set differ. What would
//! go wrong: the compiler takes the read for a constant, lifts it out of the loop, or reads once
//! for two.
//!
//! CASES 20 (LLVM issue 130286). To be run with optimisation as well: `cargo test --release`.

use immediate_tests::counter::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use immediate::{Immediate, immediate, immediate_if, immediate_read};

#[immediate]
static GO: Immediate<bool> = Immediate::new(false);
#[immediate]
static TURN: Immediate<u32> = Immediate::new(0);
#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);
#[immediate]
static BITS: Immediate<u16> = Immediate::new(0);
#[immediate]
static TWICE: Immediate<u64> = Immediate::new(1);

fn spins() -> [fn(); 4] {
    [
        || while !immediate_if!(GO) {},
        || while immediate_read!(TURN) == 0 {},
        || while immediate_if!(LEVEL < 3) {},
        || while immediate_if!(BITS, |bits| bits & 4 == 0) {},
    ]
}

#[test]
fn a_spinning_thread_sees_the_set() {
    let (spinning, done) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for spin in spins() {
            let (spinning, done) = (&spinning, &done);
            scope.spawn(move || {
                spinning.fetch_add(1, SeqCst);
                spin();
                done.fetch_add(1, SeqCst);
            });
        }
        while spinning.load(SeqCst) < 4 {
            std::thread::yield_now();
        }
        assert_eq!(done.load(SeqCst), 0);
        GO.set(true).expect("every thread can trap");
        TURN.set(1).expect("every thread can trap");
        LEVEL.set(2).expect("every thread can trap");
        BITS.set(3).expect("every thread can trap");
        LEVEL.set(3).expect("every thread can trap");
        BITS.set(12).expect("every thread can trap");
    });
    assert_eq!(done.into_inner(), 4);
}

/// Two reads in one expression, a set between.
#[inline(never)]
fn around(value: u64) -> (u64, u64, bool, bool) {
    let (before, equal) = (immediate_read!(TWICE), immediate_if!(TWICE == 1));
    TWICE.set(value).expect("every thread can trap");
    (before, immediate_read!(TWICE), equal, immediate_if!(TWICE == 1))
}

#[test]
fn two_reads_around_a_set_differ() {
    assert_eq!(around(2), (1, 2, true, false));
    assert_eq!(around(1), (2, 1, false, true));
}
