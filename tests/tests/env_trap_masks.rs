//! Threads that block SIGTRAP: some, all of them with the setter among them, or every signal that there
//! is. What would go wrong: a trap in such a thread, which kills the process.
//!
//! CASES 10 (seen in criu, issue 1482), beyond one worker: see `case_10_thread_blocks_signals`.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use immediate::Protocol;
use immediate_tests::{child, has_sites, signals};

#[path = "environment/mod.rs"]
mod environment;

use environment::{Reader, Went, sets, sets_as_foreseen};

immediate_tests::scenarios!(
    some_block_traps,
    all_block_traps,
    all_block_everything,
    blocked_and_unblocked,
);

const THREADS: usize = 3;

/// Sets while threads that block `signals`, or every second one of them, read.
fn sets_among(blocked: &[libc::c_int], every: usize, own: bool, times: u64) -> Went {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, SeqCst);
        }
    }
    let set = if blocked.is_empty() { signals::every() } else { signals::set_of(blocked) };
    let (stop, ready) = (AtomicBool::new(false), Barrier::new(THREADS + 1));
    let went = std::thread::scope(|scope| {
        let _stop = Stop(&stop);
        for index in 0..THREADS {
            let (stop, ready) = (&stop, &ready);
            scope.spawn(move || {
                if index % every == 0 {
                    signals::mask(libc::SIG_BLOCK, &set);
                }
                let mut reader = Reader::new();
                reader.look();
                ready.wait();
                while !stop.load(SeqCst) {
                    reader.look();
                }
            });
        }
        ready.wait();
        if own {
            // Threads that are made from here on block it too.
            signals::mask(libc::SIG_BLOCK, &set);
        }
        sets_as_foreseen(&mut 0, times)
    });
    if own {
        signals::mask(libc::SIG_UNBLOCK, &set);
    }
    went
}

/// Neither crashed nor hung: done by a protocol that uses no trap, or refused, naming the cause.
fn without_traps(went: &Went, refused_because: &[&str]) {
    if !has_sites() {
        return;
    }
    assert!(!went.protocols.contains(&Protocol::Int3), "{went:?}");
    for cause in refused_because {
        if let Some(error) = &went.error {
            assert!(error.contains(cause), "{cause:?} in {error}");
        }
    }
}

fn some_block_traps() {
    let went = sets_among(&[libc::SIGTRAP], 2, false, 200);
    without_traps(&went, &[]);
    assert_eq!(went.refused, 0, "the world can be stopped");
}

fn all_block_traps() {
    let went = sets_among(&[libc::SIGTRAP], 1, true, 200);
    without_traps(&went, &[]);
    assert_eq!(went.refused, 0, "the world can be stopped");
}

fn all_block_everything() {
    let went = sets_among(&[], 1, true, 2);
    without_traps(&went, &["stop-world: thread ", " blocks signal "]);
    if std::env::var_os("IMMEDIATE_PROTOCOL").is_none() {
        without_traps(&went, &["int3: thread ", " blocks SIGTRAP"]);
    }
}

/// Once nobody blocks anything any more, the best protocol is taken again.
fn blocked_and_unblocked() {
    sets_among(&[], 1, true, 2);
    let mut generation = 1_000;
    let went = environment::among_readers(2, || {
        environment::set(generation).expect("nobody blocks anything");
        sets(&mut generation, 50)
    });
    assert_eq!(went.refused, 0);
    if has_sites() {
        assert_eq!(went.protocols, [Protocol::Int3]);
    }
}

#[test]
fn threads_that_block_traps_are_never_trapped() {
    child::succeed("some_block_traps", &[]);
    child::succeed("all_block_traps", &[]);
}

#[test]
fn threads_that_block_everything_are_left_alone() {
    child::succeed("all_block_everything", &[]);
    child::succeed("all_block_everything", &[("IMMEDIATE_PROTOCOL", "stop-world")]);
}

#[test]
fn everything_can_be_set_while_all_is_blocked_by_a_protocol_without_signals() {
    let ended = child::run("all_block_everything", &[("IMMEDIATE_PROTOCOL", "quadword")]);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(!has_sites() || ended.out.contains("2 sets done by [Quadword]"), "{ended:#?}");
}

#[test]
fn the_best_protocol_comes_back() {
    child::succeed("blocked_and_unblocked", &[]);
}
