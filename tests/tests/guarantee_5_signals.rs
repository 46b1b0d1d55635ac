//! Guarantee 5: reading is async-signal-safe, also in a handler that interrupts the thread that is
//! patching (CASES 9), and changes nothing but its result.
//!
//! Two signals strike the readers and the setter without pause. Their handler reads sites and must
//! see what every reader sees. What would go wrong: a handler that waits for a lock which the
//! interrupted thread holds, that sees half a change, or reads that spoil `errno` or a register of
//! the code around them.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use immediate::{Batch, Config, Immediate, Protocol, immediate, immediate_if, immediate_read};
use immediate_tests::counter::AtomicU64;
use immediate_tests::scatter::{gather32, gather64, scatter32, scatter64};
use immediate_tests::signals::{self, Targets};
use immediate_tests::torture::{self, Bound, Window};

#[immediate]
static WIDE: Immediate<u64> = Immediate::new(0);
#[immediate]
static NARROW: Immediate<u32> = Immediate::new(0);
#[immediate]
static ODD: Immediate<bool> = Immediate::new(false);

static WINDOW: Window = Window::new();
static HANDLED: AtomicU64 = AtomicU64::new(0);
static HANDLED_WHILE_PATCHING: AtomicU64 = AtomicU64::new(0);
static FAULTS: AtomicU64 = AtomicU64::new(0);
static FIRST_FAULT: AtomicU64 = AtomicU64::new(0);
static PATCHING: AtomicBool = AtomicBool::new(false);

static TARGETS: Targets = Targets::new();

/// Between two signals to a thread.
const PAUSE: Duration = Duration::from_micros(100);

const SENTINEL: i32 = 7777;

thread_local! {
    // Without destructor and initialised by constants, so a handler may touch them.
    static IS_SETTER: Cell<bool> = const { Cell::new(false) };
    static LAST: Cell<u64> = const { Cell::new(0) };
}

static ONE_INSTANT: AtomicBool = AtomicBool::new(false);

fn fault(code: u64) {
    if FAULTS.fetch_add(1, SeqCst) == 0 {
        FIRST_FAULT.store(code, SeqCst);
    }
}

/// Reads each variable; a later read must give what an earlier one gave, or newer.
fn look() {
    let mut last = LAST.get();
    let mut check = |code, generation: Option<u64>, (from, to): (u64, u64)| match generation {
        None => fault(code),
        Some(generation) if generation < from || generation > to => fault(code + 1),
        // The batch is one instant, so this holds across sites as well; plain loads change one after
        // another.
        Some(generation) if generation < last && ONE_INSTANT.load(SeqCst) => fault(code + 2),
        Some(generation) => last = generation,
    };
    let (value, from, to) = WINDOW.read(|| immediate_read!(WIDE));
    check(10, gather64(value), (from, to));
    let (value, from, to) = WINDOW.read(|| immediate_read!(NARROW));
    check(20, gather32(value), (from, to));
    let (is_odd, from, to) = WINDOW.read(|| immediate_if!(ODD));
    if to - from <= 1 {
        check(30, Some(from + u64::from(is_odd != (from % 2 == 1))), (from, to));
    }
    LAST.set(last);
}

extern "C" fn handler(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // What the interrupted code holds is later than `LAST`, never earlier.
    look();
    HANDLED.fetch_add(1, SeqCst);
    if IS_SETTER.get() && PATCHING.load(SeqCst) {
        HANDLED_WHILE_PATCHING.fetch_add(1, SeqCst);
    }
}

fn errno() -> *mut i32 {
    // SAFETY: always succeeds.
    unsafe { libc::__errno_location() }
}

/// Many values are held in registers around a read of each kind: none may change.
#[inline(never)]
fn keeps_registers(seed: u64) {
    let seed = std::hint::black_box(seed);
    let whole: [u64; 12] = std::array::from_fn(|n| seed.wrapping_mul(2 * n as u64 + 1));
    let parts: [f64; 12] = std::array::from_fn(|n| (seed % 1000) as f64 * (n as f64 + 0.5));
    let before: u64 = whole.iter().fold(0, |sum, one| sum.wrapping_add(*one).rotate_left(7));
    let total: f64 = parts.iter().sum();
    let read = immediate_read!(WIDE) ^ u64::from(immediate_read!(NARROW));
    let read = if immediate_if!(ODD) { !read } else { read };
    let after: u64 = whole.iter().fold(0, |sum, one| sum.wrapping_add(*one).rotate_left(7));
    if std::hint::black_box(read) == 1 || before != after || total != parts.iter().sum::<f64>() {
        fault(40);
    }
}

#[test]
fn handlers_read_what_everybody_reads() {
    let config = Config { protocol: Some(Protocol::Int3), ..Config::default() };
    immediate::configure(config).expect("nothing has been set");
    ONE_INSTANT.store(immediate_tests::has_sites(), SeqCst);
    // The two do not interrupt each other: a read of an outer one is then never older than `LAST`.
    let both = signals::set_of(&[libc::SIGUSR1, libc::SIGPROF]);
    for signal in [libc::SIGUSR1, libc::SIGPROF] {
        signals::install(signal, handler, both, libc::SA_RESTART);
    }
    let interval = libc::timeval { tv_sec: 0, tv_usec: 1000 };
    let timer = libc::itimerval { it_interval: interval, it_value: interval };
    // SAFETY: starts a timer of this process, whose signal is handled.
    unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, std::ptr::null_mut()) };

    IS_SETTER.set(true);
    TARGETS.add_own();
    let reader = |index: usize| {
        TARGETS.add_own();
        let mut seed = index as u64;
        move || {
            // SAFETY: this thread's own.
            unsafe { *errno() = SENTINEL };
            signals::mask(libc::SIG_BLOCK, &both);
            look();
            signals::mask(libc::SIG_UNBLOCK, &both);
            for _ in 0..50 {
                seed = seed.wrapping_add(1);
                keeps_registers(seed);
            }
            // SAFETY: this thread's own.
            if unsafe { *errno() } != SENTINEL {
                fault(50);
            }
        }
    };
    let sent = signals::storm(&TARGETS, libc::SIGUSR1, PAUSE, || {
        torture::run("signals", Bound::new(10_000, 10), 3, reader, |generation| {
            WINDOW.set(generation, || {
                let batch = Batch::new()
                    .set(&WIDE, scatter64(generation))
                    .set(&NARROW, scatter32(generation))
                    .set(&ODD, generation % 2 == 1);
                PATCHING.store(true, SeqCst);
                let result = batch.apply();
                PATCHING.store(false, SeqCst);
                result.expect("every thread can trap");
            });
        });
    });
    let (handled, patching) = (HANDLED.load(SeqCst), HANDLED_WHILE_PATCHING.load(SeqCst));
    println!("{sent} signals sent, {handled} handled, {patching} of them in the middle of a set");
    assert_eq!(FAULTS.load(SeqCst), 0, "first fault {}", FIRST_FAULT.load(SeqCst));
    // Without sites a set is over in no time.
    assert!(patching > 0 || !immediate_tests::has_sites(), "no signal came while patching");
}
