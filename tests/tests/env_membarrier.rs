//! The barrier is refused: `membarrier` answers `ENOSYS`, `EPERM` or `EINVAL`, from the start, from
//! the nth call on, or from any moment on; `ENOMEM` once; or a filter kills whoever calls it. What
//! would go wrong: trap bytes that are taken away although another processor may still run what was
//! there, a set that is half done, or a process that is killed although another protocol is open.
//!
//! CASES 12 (seen in moby, issue 40731; coreclr, issue 24298).

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use immediate::{Config, Protocol};
use immediate_tests::seccomp::{self, Answer, Calls};
use immediate_tests::{child, has_sites};

#[path = "environment/mod.rs"]
mod environment;

use environment::{among_readers, assert_all, sets, sets_as_foreseen};

immediate_tests::scenarios!(
    from_the_start,
    from_a_call_on,
    once,
    from_any_moment_on,
    kills_from_the_start,
    kills_after_the_first_set,
    forced_without_barrier,
);

const BARRIER: Calls = Calls::All(libc::SYS_membarrier);
const NUMBER: &str = "IMMEDIATE_TEST_NUMBER";
const ERRNO: &str = "IMMEDIATE_TEST_ERRNO";

fn argument(name: &str) -> i32 {
    std::env::var(name).expect("an argument").parse().expect("a number")
}

/// Sets by stopping the world, and says why not by a barrier.
fn stops_the_world(causes: &[&str]) {
    let went = sets_as_foreseen(&mut 0, 100);
    assert_eq!(went.refused, 0);
    if has_sites() {
        assert_eq!(went.protocols, [Protocol::StopWorld]);
        let status = among_readers(1, immediate::status);
        for cause in causes {
            assert!(status.to_string().contains(cause), "{cause:?} in {status}");
        }
    }
}

fn from_the_start() {
    let errno = argument(ERRNO);
    seccomp::answer(BARRIER, Answer::Errno(errno));
    let why = std::io::Error::from_raw_os_error(errno);
    stops_the_world(&[&format!("int3: membarrier(REGISTER_PRIVATE_EXPEDITED_SYNC_CORE): {why}")]);
}

/// The first calls happen; the others are refused. Wherever that falls, each set succeeds, and nobody
/// sees anything but whole values.
fn from_a_call_on() {
    let (number, errno) = (argument(NUMBER).cast_unsigned().into(), argument(ERRNO));
    seccomp::supervise(BARRIER, move |calls| (calls >= number).then_some(errno));
    let went = among_readers(2, || sets(&mut 0, 10));
    assert_eq!((went.done, went.refused), (10, 0));
    if has_sites() {
        assert!(went.protocols.contains(&Protocol::StopWorld));
        let last = immediate::status().last.expect("code was changed");
        assert_eq!(last.trapping, 0, "no trap has stayed");
    }
}

/// Want of memory passes; one call more, and the best protocol goes on.
fn once() {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let number = argument(NUMBER).cast_unsigned().into();
    seccomp::supervise(BARRIER, move |calls| {
        CALLS.store(calls + 1, SeqCst);
        (calls == number).then_some(libc::ENOMEM)
    });
    let went = among_readers(2, || sets(&mut 0, 10));
    assert_eq!((went.done, went.refused), (10, 0));
    if has_sites() {
        assert_eq!(went.protocols, [Protocol::Int3]);
        assert!(CALLS.load(SeqCst) > number, "the call was made");
    }
}

/// The program shuts itself in while it sets.
fn from_any_moment_on() {
    among_readers(2, || {
        let mut generation = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                seccomp::answer(BARRIER, Answer::Errno(libc::EPERM));
            });
            let went = sets(&mut generation, 1_000);
            assert_eq!(went.refused, 0);
        });
        let went = sets(&mut generation, 20);
        assert_eq!(went.refused, 0);
        if has_sites() {
            assert_eq!(went.protocols, [Protocol::StopWorld]);
        }
    });
}

fn answer_of(number: i32) -> Answer {
    if number == 0 { Answer::Trap } else { Answer::Kill }
}

fn kills_from_the_start() {
    seccomp::answer(BARRIER, answer_of(argument(NUMBER)));
    stops_the_world(&["int3: membarrier(REGISTER_PRIVATE_EXPEDITED_SYNC_CORE): "]);
}

/// The barrier has been used; then comes a filter that kills.
fn kills_after_the_first_set() {
    let mut generation = 0;
    let went = sets_as_foreseen(&mut generation, 10);
    if has_sites() {
        assert_eq!(went.protocols, [Protocol::Int3]);
    }
    seccomp::answer(BARRIER, answer_of(argument(NUMBER)));
    let went = sets_as_foreseen(&mut generation, 100);
    assert_eq!(went.refused, 0);
    if has_sites() {
        assert_eq!(went.protocols, [Protocol::StopWorld]);
    }
}

fn forced_without_barrier() {
    seccomp::answer(BARRIER, Answer::Errno(libc::ENOSYS));
    let went = sets_as_foreseen(&mut 0, 5);
    if has_sites() {
        assert_eq!(went.done, 0);
        let error = went.error.expect("refused");
        assert!(error.contains("membarrier(REGISTER_PRIVATE_EXPEDITED_SYNC_CORE): "), "{error}");
        assert_all(0);
        let config = Config::default();
        assert!(immediate::configure(config).is_ok(), "nothing has been set yet");
    }
}

#[test]
fn without_the_barrier_the_world_is_stopped() {
    for errno in [libc::ENOSYS, libc::EPERM, libc::EINVAL] {
        child::succeed("from_the_start", &[(ERRNO, &errno.to_string())]);
    }
}

#[test]
fn whichever_call_is_the_first_refused_the_set_is_whole() {
    // Two calls prepare, three are a set.
    for number in 0..12 {
        for errno in [libc::ENOSYS, libc::EPERM] {
            let arguments = [(NUMBER, &*number.to_string()), (ERRNO, &*errno.to_string())];
            child::succeed("from_a_call_on", &arguments);
        }
    }
    child::succeed("from_any_moment_on", &[]);
}

#[test]
fn want_of_memory_is_waited_out() {
    for number in 0..6 {
        child::succeed("once", &[(NUMBER, &number.to_string())]);
    }
}

#[test]
fn a_filter_that_kills_kills_nobody() {
    for number in ["0", "1"] {
        child::succeed("kills_from_the_start", &[(NUMBER, number)]);
        child::succeed("kills_after_the_first_set", &[(NUMBER, number)]);
    }
}

#[test]
fn what_was_asked_for_and_needs_the_barrier_is_refused() {
    child::succeed("forced_without_barrier", &[("IMMEDIATE_PROTOCOL", "int3")]);
    child::succeed("forced_without_barrier", &[("IMMEDIATE_PROTOCOL", "quadword")]);
}
