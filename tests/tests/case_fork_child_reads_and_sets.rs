//! A child is forked while another thread sets in a loop. What would go wrong: the child inherits a
//! lock whose owner does not exist there and waits for ever, traps that nobody takes away, or reads
//! a value that its parent had not set.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use immediate::{Batch, Immediate, immediate, immediate_if, immediate_read};
use immediate_tests::scatter::{gather64, scatter64};
use immediate_tests::torture::Window;

#[immediate]
static WIDE: Immediate<u64> = Immediate::new(0);
#[immediate]
static ODD: Immediate<bool> = Immediate::new(false);

static WINDOW: Window = Window::new();

const FORKS: u32 = 200;

fn set(generation: u64) -> Result<(), immediate::Error> {
    Batch::new().set(&WIDE, scatter64(generation)).set(&ODD, generation % 2 == 1).apply()
}

/// What the child does; its exit status says what went wrong.
fn child(from: u64) -> i32 {
    let Some(generation) = gather64(immediate_read!(WIDE)) else { return 10 };
    if !(from..=WINDOW.begun()).contains(&generation) {
        return 11;
    }
    if immediate_if!(ODD) != (generation % 2 == 1) {
        return 12;
    }
    if WIDE.get() != scatter64(generation) {
        return 13;
    }
    for own in 1..=3 {
        let next = generation + 1000 + own;
        if set(next).is_err() {
            return 14;
        }
        if immediate_read!(WIDE) != scatter64(next) || immediate_if!(ODD) != (next % 2 == 1) {
            return 15;
        }
    }
    // With a second thread in the child, by a protocol that synchronises.
    let stop = AtomicBool::new(false);
    let with_threads = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(SeqCst) {
                std::hint::black_box((immediate_read!(WIDE), immediate_if!(ODD)));
            }
        });
        let done = (0..5).all(|own| set(generation + 2000 + own).is_ok());
        stop.store(true, SeqCst);
        done
    });
    if !with_threads {
        return 16;
    }
    if immediate_read!(WIDE) != scatter64(generation + 2004) { 17 } else { 0 }
}

fn wait(process: libc::pid_t) -> i32 {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut status = 0;
    loop {
        // SAFETY: the child is ours.
        match unsafe { libc::waitpid(process, &raw mut status, libc::WNOHANG) } {
            0 if Instant::now() < deadline => std::thread::sleep(Duration::from_micros(200)),
            0 => {
                // SAFETY: the child is ours, and it hangs.
                unsafe { libc::kill(process, libc::SIGKILL) };
                panic!("the child hangs");
            }
            _ => return status,
        }
    }
}

#[test]
fn a_child_has_the_values_of_its_fork_and_sets_its_own() {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let setter = scope.spawn(|| {
            let mut generation = 0;
            while !stop.load(SeqCst) {
                generation += 1;
                WINDOW.set(generation, || set(generation).expect("every thread can trap"));
                // A child's own values are not seen here.
                assert_eq!(immediate_read!(WIDE), scatter64(generation));
            }
            generation
        });
        let forked = std::panic::catch_unwind(|| {
            for _ in 0..FORKS {
                let from = WINDOW.settled();
                // SAFETY: the child reads, sets, makes one thread and leaves without unwinding. What
                // it calls of the C library is told of the fork.
                match unsafe { libc::fork() } {
                    -1 => panic!("fork: {}", std::io::Error::last_os_error()),
                    0 => {
                        let code = child(from);
                        // SAFETY: ends the child without running the parent's destructors.
                        unsafe { libc::_exit(code) };
                    }
                    process => {
                        let status = wait(process);
                        assert!(libc::WIFEXITED(status), "killed: {status:#x}");
                        assert_eq!(libc::WEXITSTATUS(status), 0, "see `child`");
                    }
                }
            }
        });
        stop.store(true, SeqCst);
        let sets = setter.join().expect("the setter does not panic");
        forked.expect("as asserted");
        println!("{FORKS} forks among {sets} sets");
    });
}

/// A thread that forks while it holds the lock holds it on both sides.
#[test]
fn a_fork_under_the_lock_keeps_it() {
    let guard = immediate::lock();
    // SAFETY: as above.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            let refused = WIDE.set(1) == Err(immediate::Error::WithinUpdate);
            let done = guard.set(&WIDE, scatter64(9)).is_ok();
            drop(guard);
            let free = set(10).is_ok() && immediate_read!(WIDE) == scatter64(10);
            let code = i32::from(!refused) + 2 * i32::from(!done) + 4 * i32::from(!free);
            // SAFETY: as above.
            unsafe { libc::_exit(code) };
        }
        process => {
            let status = wait(process);
            drop(guard);
            assert!(libc::WIFEXITED(status), "killed: {status:#x}");
            assert_eq!(libc::WEXITSTATUS(status), 0, "refused, done, free");
        }
    }
}
