//! A signal handler with sites interrupts the only thread of a program in the middle of a set. There
//! is nobody to synchronise with, so the set takes the protocol `single`; but the handler runs the
//! sites at any point of it. What would go wrong: the handler runs a branch of which some bytes are
//! new and some old, or sees one variable new and then another old although the set is said to be
//! one instant.
//!
//! CASES 9.

#![allow(unsafe_code)]

use std::sync::atomic::Ordering::SeqCst;

use immediate::{Batch, Immediate, Protocol, immediate, immediate_if, immediate_read};
use immediate_tests::counter::AtomicU64;
use immediate_tests::scatter::{gather64, scatter64};
use immediate_tests::{child, maps, signals};

#[immediate]
static FIRST: Immediate<u64> = Immediate::new(0);
#[immediate]
static ODD: Immediate<bool> = Immediate::new(false);
#[immediate]
static LAST: Immediate<u64> = Immediate::new(0);

const SETS: u64 = 20_000;

static BEGUN: AtomicU64 = AtomicU64::new(0);
static SETTLED: AtomicU64 = AtomicU64::new(0);
static HANDLED: AtomicU64 = AtomicU64::new(0);
static IN_THE_MIDDLE: AtomicU64 = AtomicU64::new(0);
static FAULTS: AtomicU64 = AtomicU64::new(0);
static MIXED: AtomicU64 = AtomicU64::new(0);

/// Many branches, so that some are half-way whenever one can be.
macro_rules! branches {
    ($count:ident: $($each:literal)*) => { $(
        $count += if immediate_if!(ODD) { 1 + $each } else { std::hint::black_box(0) };
    )* };
}

#[inline(never)]
fn read_all() -> (Option<u64>, u64, Option<u64>) {
    let mut taken = 0;
    let first = gather64(immediate_read!(FIRST));
    branches!(taken: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0);
    branches!(taken: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0);
    (first, taken, gather64(immediate_read!(LAST)))
}

extern "C" fn handler(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let (from, to) = (SETTLED.load(SeqCst), BEGUN.load(SeqCst));
    let (first, taken, last) = read_all();
    let expected = |generation: u64| (Some(generation), (generation % 2) * 80, Some(generation));
    let found = (first, taken, last);
    if found != expected(from) && found != expected(to) {
        let one_is_neither = |one: Option<u64>| one != Some(from) && one != Some(to);
        let counter = if one_is_neither(first) || one_is_neither(last) { &FAULTS } else { &MIXED };
        counter.fetch_add(1, SeqCst);
    }
    HANDLED.fetch_add(1, SeqCst);
    IN_THE_MIDDLE.fetch_add(u64::from(from != to), SeqCst);
}

immediate_tests::scenarios!(alone);

fn alone() {
    assert_eq!(maps::threads(), 1);
    signals::install(libc::SIGUSR1, handler, signals::set_of(&[]), libc::SA_RESTART);
    let target = std::process::id() as i32;
    // SAFETY: the child only sends signals until its parent ends it.
    let striker = unsafe { libc::fork() };
    if striker == 0 {
        loop {
            // SAFETY: a signal to the parent; once that has ended, to nobody.
            unsafe {
                if libc::getppid() != target || libc::kill(target, libc::SIGUSR1) != 0 {
                    libc::_exit(0);
                }
            }
        }
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(15);
    let mut generation = 0;
    while generation < SETS && std::time::Instant::now() < deadline {
        generation += 1;
        BEGUN.store(generation, SeqCst);
        Batch::new()
            .set(&FIRST, scatter64(generation))
            .set(&ODD, generation % 2 == 1)
            .set(&LAST, scatter64(generation))
            .apply()
            .expect("one thread");
        SETTLED.store(generation, SeqCst);
    }
    // SAFETY: the child is ours.
    unsafe {
        libc::kill(striker, libc::SIGKILL);
        libc::waitpid(striker, std::ptr::null_mut(), 0);
    }
    let (handled, middle) = (HANDLED.load(SeqCst), IN_THE_MIDDLE.load(SeqCst));
    println!(
        "{generation} sets, {handled} signals handled, {middle} of them in the middle of a set"
    );
    assert_eq!(FAULTS.load(SeqCst), 0, "neither old nor new");
    if immediate_tests::has_sites() {
        // Plain loads change one after another.
        assert_eq!(MIXED.load(SeqCst), 0, "some sites old and some new in one handler");
        assert!(middle > 0, "no signal came in the middle of a set");
        let status = immediate::status();
        assert_eq!(status.last.expect("code was changed").protocol, Protocol::Single);
        assert!(status.one_instant);
    }
}

#[test]
fn the_handler_sees_all_old_or_all_new() {
    child::succeed("alone", &[]);
}
