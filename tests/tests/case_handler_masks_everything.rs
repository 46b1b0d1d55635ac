//! A handler with sites blocks every signal while it runs, SIGTRAP too. A trap in it would kill the
//! process, so a set must take another protocol, or refuse with an error that names the signal.
//!
//! CASES 10 (criu, issue 1482), for handlers.

#![allow(unsafe_code)]
// The width of the variable differs from target to target.
#![allow(clippy::useless_conversion)]

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use immediate::{
    Config, Error, Immediate, Protocol, Reason, Refusal, immediate, immediate_if, immediate_read,
};
use immediate_tests::scatter::Wide;
use immediate_tests::signals::{self, Targets};
use immediate_tests::torture::{self, Bound};
use immediate_tests::{child, maps};

#[immediate]
static VALUE: Immediate<Wide> = Immediate::new(0);
#[immediate]
static SWITCH: Immediate<bool> = Immediate::new(false);

/// Between two signals to a thread.
const PAUSE: Duration = Duration::from_micros(300);

static SUM: AtomicU64 = AtomicU64::new(0);
static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    for _ in 0..20 {
        SUM.fetch_add(u64::from(immediate_read!(VALUE)) + u64::from(immediate_if!(SWITCH)), SeqCst);
    }
    HANDLED.fetch_add(1, SeqCst);
}

immediate_tests::scenarios!(by_choice, forced, forced_real_time, forced_alone);

fn set(generation: u64) -> Result<(), Error> {
    immediate::Batch::new()
        .set(&VALUE, generation as Wide)
        .set(&SWITCH, generation % 2 == 1)
        .apply()
}

/// Sets while readers and this thread are struck; gives how many sets succeeded.
fn storm(signal: libc::c_int) -> u64 {
    let targets = Targets::new();
    targets.add_own();
    let mut succeeded = 0;
    signals::storm(&targets, signal, PAUSE, || {
        let reader = |_| {
            targets.add_own();
            || assert!(immediate_read!(VALUE) < Wide::MAX)
        };
        // Real-time signals queue up and are handled to the last.
        let updates = if signal < libc::SIGRTMIN() { 2_000 } else { 100 };
        torture::run("struck", Bound::new(updates, 5), 2, reader, |generation| {
            let before = VALUE.get();
            match set(generation) {
                Ok(()) => succeeded += 1,
                Err(Error::Refused(Refusal::NoProtocol(_))) => assert_eq!(VALUE.get(), before),
                Err(other) => panic!("{other}"),
            }
        });
    });
    println!("{succeeded} sets succeeded, {} signals handled", HANDLED.load(SeqCst));
    assert!(HANDLED.load(SeqCst) > 0);
    succeeded
}

fn names_the_signal(rejected: &[immediate::Rejected], signal: i32) -> bool {
    rejected.iter().any(|one| {
        one.protocol == Protocol::Int3 && one.reason == Reason::HandlerBlocksTrap { signal }
    })
}

/// The library chooses.
fn by_choice() {
    signals::install(libc::SIGUSR1, handler, signals::every(), libc::SA_RESTART);
    let succeeded = storm(libc::SIGUSR1);
    if !immediate_tests::has_sites() {
        return;
    }
    let status = std::thread::scope(|scope| {
        scope.spawn(immediate::status).join().expect("status does not panic")
    });
    println!("{status}");
    assert!(names_the_signal(&status.rejected, libc::SIGUSR1), "{:?}", status.rejected);
    assert_ne!(status.protocol, Some(Protocol::Int3));
    assert_eq!(status.protocol.is_some(), succeeded > 0);
    if status.protocol == Some(Protocol::Quadword) {
        assert!(!status.one_instant);
    }
}

fn refused(signal: libc::c_int) {
    let config = Config { protocol: Some(Protocol::Int3), ..Config::default() };
    immediate::configure(config).expect("nothing has been set");
    signals::install(signal, handler, signals::every(), libc::SA_RESTART);
    let succeeded = storm(signal);
    if immediate_tests::has_sites() {
        assert_eq!(succeeded, 0);
        let error = set(9).expect_err("the handler blocks SIGTRAP");
        let Error::Refused(Refusal::NoProtocol(rejected)) = &error else { panic!("{error}") };
        assert!(names_the_signal(rejected, signal), "{error}");
        assert!(error.to_string().contains(&format!("signal {signal}")), "{error}");
        // Once the mask is as it should be, it works.
        signals::install(signal, handler, signals::set_of(&[]), libc::SA_RESTART);
        // Real-time signals are looked at again after a while.
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while set(9).is_err() {
            assert!(std::time::Instant::now() < deadline, "still refused");
        }
        assert_eq!(immediate_read!(VALUE), 9);
        assert!(storm(signal) > 0);
    }
}

fn forced() {
    refused(libc::SIGUSR1);
}

fn forced_real_time() {
    refused(libc::SIGRTMIN() + 3);
}

/// With one thread a trap is just as deadly: the handler interrupts the set itself.
fn forced_alone() {
    assert_eq!(maps::threads(), 1);
    let config = Config { protocol: Some(Protocol::Int3), ..Config::default() };
    immediate::configure(config).expect("nothing has been set");
    signals::install(libc::SIGUSR1, handler, signals::every(), libc::SA_RESTART);
    if immediate_tests::has_sites() {
        let error = set(9).expect_err("the handler blocks SIGTRAP");
        let Error::Refused(Refusal::NoProtocol(rejected)) = &error else { panic!("{error}") };
        assert!(names_the_signal(rejected, libc::SIGUSR1), "{error}");
        assert_eq!((immediate_read!(VALUE), VALUE.get()), (0, 0));
    }
}

#[test]
fn nobody_is_killed_by_chosen_protocol() {
    child::succeed("by_choice", &[]);
}

#[test]
fn nobody_is_killed_by_int3() {
    child::succeed("forced", &[]);
}

#[test]
fn nobody_is_killed_by_int3_in_a_real_time_signal() {
    child::succeed("forced_real_time", &[]);
}

#[test]
fn nobody_is_killed_by_int3_with_one_thread() {
    child::succeed("forced_alone", &[]);
}
