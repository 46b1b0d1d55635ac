//! The process may open one file more, and a thread blocks every signal. What would go wrong: the file
//! that tells a thread's mask cannot be opened, the thread is taken for one that has ended, and a trap in
//! it kills the process, or the world is taken for stopped while it runs.

#![allow(unsafe_code)]

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};

use immediate::Protocol;
use immediate_tests::{child, has_sites, signals};

#[path = "environment/mod.rs"]
mod environment;

use environment::{Reader, sets};

immediate_tests::scenarios!(one_left);

/// Opens files until so many more fit.
fn leave(count: usize) -> Vec<File> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: limits this process; the kernel writes into memory that we own.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit), 0);
        limit.rlim_cur = 64;
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
    }
    let mut files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    files.truncate(files.len() - count);
    files
}

fn one_left() {
    let (stop, worker) = (AtomicBool::new(false), AtomicI32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            signals::mask(libc::SIG_BLOCK, &signals::every());
            worker.store(signals::own_id(), SeqCst);
            let mut reader = Reader::new();
            while !stop.load(SeqCst) {
                reader.look();
            }
        });
        while worker.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        let mut generation = 0;
        let result = std::panic::catch_unwind(move || {
            for count in [0, 1, 2] {
                let files = leave(count);
                let went = sets(&mut generation, 5);
                drop(files);
                // Neither a trap nor a stop can be right.
                let quadword = Protocol::Quadword;
                assert!(went.protocols.iter().all(|one| *one == quadword), "{:?}", went.protocols);
                assert!(!has_sites() || went.refused > 0 || !went.protocols.is_empty());
            }
        });
        stop.store(true, SeqCst);
        result.expect("as asserted");
    });
}

#[test]
fn a_thread_that_cannot_be_looked_at_is_still_there() {
    child::succeed("one_left", &[]);
    child::succeed("one_left", &[("IMMEDIATE_PROTOCOL", "int3")]);
    child::succeed("one_left", &[("IMMEDIATE_PROTOCOL", "stop-world")]);
}
