//! A worker blocks all signals and loops on a site while the variable is set; or SIGTRAP was ignored
//! when the program began. A trap in a thread that blocks it kills the process, so a set must take
//! another protocol, or refuse with an error that names the thread.
//!
//! CASES 10 (seen in criu, issue 1482).

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::SeqCst};

use immediate::{Batch, Error, Immediate, Protocol, Reason, Refusal, Rejected};
use immediate::{immediate, immediate_if, immediate_read};
use immediate_tests::scatter::{Wide, gather_wide, scatter_wide};
use immediate_tests::{child, signals};

#[immediate]
static WIDE: Immediate<Wide> = Immediate::new(0);
#[immediate]
static ODD: Immediate<bool> = Immediate::new(false);

immediate_tests::scenarios!(worker_blocks, setter_blocks, is_ignored, is_default);

const SETS: u64 = 2_000;

static READS: AtomicU64 = AtomicU64::new(0);

fn set(generation: u64) -> Result<(), Error> {
    Batch::new().set(&WIDE, scatter_wide(generation)).set(&ODD, generation % 2 == 1).apply()
}

fn read_until(stop: &AtomicBool) {
    let mut last = 0;
    while !stop.load(SeqCst) {
        let generation = gather_wide(immediate_read!(WIDE)).expect("no mixture");
        assert!(generation >= last, "{generation} after {last}");
        std::hint::black_box(immediate_if!(ODD));
        last = generation;
        READS.fetch_add(1, SeqCst);
    }
}

fn names_the_thread(rejected: &[Rejected], thread: i32) -> bool {
    rejected.iter().any(|one| {
        one.protocol == Protocol::Int3 && one.reason == Reason::ThreadBlocksTrap { thread }
    })
}

/// Sets while `thread` blocks SIGTRAP; checks that it went by another protocol or was refused.
fn set_without_traps(thread: i32) {
    let mut succeeded = 0;
    for generation in 1..=SETS {
        match set(generation) {
            Ok(()) => {
                succeeded += 1;
                assert_eq!(immediate_read!(WIDE), scatter_wide(generation));
            }
            Err(error) => {
                let Error::Refused(Refusal::NoProtocol(rejected)) = &error else {
                    panic!("{error}")
                };
                assert!(names_the_thread(rejected, thread), "{error}");
                assert!(error.to_string().contains(&format!("thread {thread} blocks SIGTRAP")));
                assert_eq!((immediate_read!(WIDE), WIDE.get()), (0, 0));
                // Each refusal waits for a moment in which the thread might unblock.
                if generation > 20 {
                    break;
                }
            }
        }
    }
    println!("{succeeded} sets succeeded\n{}", immediate::status());
    if !immediate_tests::has_sites() {
        assert_eq!(succeeded, SETS);
        return;
    }
    let status = immediate::status();
    if succeeded > 0 {
        assert_eq!(succeeded, SETS);
        let last = status.last.expect("code was changed");
        assert_ne!(last.protocol, Protocol::Int3);
        assert!(names_the_thread(&last.rejected, thread), "{:?}", last.rejected);
        assert_ne!(std::env::var("IMMEDIATE_PROTOCOL").as_deref(), Ok("int3"));
    } else {
        assert!(status.refusal.is_some() && status.protocol.is_none());
    }
    let is_amd =
        std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default().contains("AuthenticAMD");
    if is_amd && std::env::var_os("IMMEDIATE_PROTOCOL").is_none() {
        assert_eq!(status.protocol, Some(Protocol::Quadword));
        assert!(succeeded > 0);
    }
}

fn worker_blocks() {
    let (stop, worker) = (AtomicBool::new(false), AtomicI32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            signals::mask(libc::SIG_BLOCK, &signals::every());
            worker.store(signals::own_id(), SeqCst);
            read_until(&stop);
        });
        scope.spawn(|| read_until(&stop));
        while worker.load(SeqCst) == 0 || READS.load(SeqCst) < 1000 {
            std::thread::yield_now();
        }
        // The worker ends also when this panics.
        let result = std::panic::catch_unwind(|| set_without_traps(worker.load(SeqCst)));
        stop.store(true, SeqCst);
        result.expect("as asserted");
    });
    // With that thread gone every protocol is open again.
    set(SETS + 1).expect("no thread blocks signals");
    assert_eq!(immediate_read!(WIDE), scatter_wide(SETS + 1));
    println!("{} reads", READS.load(SeqCst));
}

/// The thread that sets blocks them itself.
fn setter_blocks() {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| read_until(&stop));
        signals::mask(libc::SIG_BLOCK, &signals::every());
        let result = std::panic::catch_unwind(|| set_without_traps(signals::own_id()));
        stop.store(true, SeqCst);
        result.expect("as asserted");
    });
}

/// What SIGTRAP did before makes no difference to a set, and stays for traps that are not ours.
fn with_action(action: libc::sighandler_t) {
    signals::install_raw(libc::SIGTRAP, action, signals::set_of(&[]), 0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| read_until(&stop));
        scope.spawn(|| read_until(&stop));
        while READS.load(SeqCst) < 1000 {
            std::thread::yield_now();
        }
        for generation in 1..=SETS {
            set(generation).expect("every thread can trap");
        }
        stop.store(true, SeqCst);
    });
    assert_eq!(immediate_read!(WIDE), scatter_wide(SETS));
    if immediate_tests::has_sites() {
        assert_eq!(immediate::status().last.expect("code was changed").protocol, Protocol::Int3);
    }
}

fn is_ignored() {
    with_action(libc::SIG_IGN);
    // Sent by a process, it is still ignored.
    signals::strike(signals::own_id(), libc::SIGTRAP);
    println!("still here");
}

fn is_default() {
    with_action(libc::SIG_DFL);
    println!("about to end");
    signals::strike(signals::own_id(), libc::SIGTRAP);
    println!("still here");
}

#[test]
fn a_worker_that_blocks_all_signals_survives() {
    child::succeed("worker_blocks", &[]);
    child::succeed("worker_blocks", &[("IMMEDIATE_PROTOCOL", "int3")]);
}

#[test]
fn a_setter_that_blocks_all_signals_survives() {
    child::succeed("setter_blocks", &[]);
    child::succeed("setter_blocks", &[("IMMEDIATE_PROTOCOL", "int3")]);
}

#[test]
fn sigtrap_ignored_or_default_makes_no_difference() {
    child::succeed("is_ignored", &[]);
    let ended = child::run("is_default", &[]);
    assert!(ended.out.contains("about to end"), "{ended:#?}");
    assert!(!ended.out.contains("still here"), "{ended:#?}");
    assert_eq!(ended.signal, Some(libc::SIGTRAP), "{ended:#?}");
}
