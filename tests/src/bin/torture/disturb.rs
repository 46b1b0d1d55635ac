//! What goes on besides: forks, signals, threads that come and go, a thread that blocks signals.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use immediate_tests::signals::{self, Targets};

use crate::sites::{self, SITES, TOGETHER};
use crate::violation::{self, Violation};
use crate::{PATIENCE, is_over};

/// Children forked.
pub(crate) static FORKS: AtomicU64 = AtomicU64::new(0);
/// Signals handled.
pub(crate) static HANDLED: AtomicU64 = AtomicU64::new(0);
/// Short-lived threads made.
pub(crate) static MADE: AtomicU64 = AtomicU64::new(0);

static TARGETS: Targets = Targets::new();

/// Adds this thread to those that are struck by signals.
pub(crate) fn be_struck() {
    TARGETS.add_own();
}

/// Reads what the interrupted thread may be in the middle of reading, or of setting.
extern "C" fn read_all(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    for site in SITES.iter().step_by(3) {
        site.check(&mut 0);
    }
    HANDLED.fetch_add(1, SeqCst);
}

/// The handlers of the signals that [`strike`] sends.
pub(crate) fn install_handlers() {
    for signal in [libc::SIGUSR1, libc::SIGUSR2] {
        signals::install(signal, read_all, signals::set_of(&[]), libc::SA_RESTART);
    }
}

/// Strikes readers and setters over and over.
pub(crate) fn strike() {
    signals::storm(&TARGETS, libc::SIGUSR1, Duration::from_millis(1), || {
        signals::storm(&TARGETS, libc::SIGUSR2, Duration::from_millis(3), || {
            while !is_over() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
    });
}

/// Makes threads that read a little, over and over.
pub(crate) fn come_and_go() {
    while !is_over() {
        let threads: [_; 3] = std::array::from_fn(|_| {
            std::thread::spawn(|| {
                for _ in 0..10 {
                    SITES.iter().for_each(|site| site.check(&mut 0));
                }
            })
        });
        MADE.fetch_add(3, SeqCst);
        for thread in threads {
            if thread.join().is_err() {
                violation::exit(&Violation::of_program("a short-lived thread panicked"));
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Blocks every signal now and then, and reads all the same. The mask changes while nobody sets: a
/// thread that begins to block SIGTRAP in the middle of a set and then comes to a site is killed.
pub(crate) fn block_now_and_then() {
    let every = signals::every();
    let change = |how| {
        let _guard = immediate::lock();
        signals::mask(how, &every);
    };
    while !is_over() {
        // Where nothing but traps or a stopped world is open, no set succeeds meanwhile, and each waits
        // for a while before it is refused: so most of the time nothing is blocked.
        std::thread::sleep(Duration::from_millis(500));
        change(libc::SIG_BLOCK);
        for _ in 0..200 {
            SITES.iter().for_each(|site| site.check(&mut 0));
        }
        change(libc::SIG_UNBLOCK);
    }
}

/// Forks over and over; the child reads and sets.
pub(crate) fn fork_over_and_over() {
    while !is_over() {
        // SAFETY: the child reads, sets and leaves without unwinding; what it calls of the C library
        // is told of the fork.
        match unsafe { libc::fork() } {
            -1 => violation::exit(&Violation::of_program("fork failed")),
            0 => child(),
            child => wait(child),
        }
        FORKS.fetch_add(1, SeqCst);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Has one thread, and the values of its fork.
fn child() -> ! {
    SITES.iter().for_each(|site| site.check(&mut 0));
    for next in TOGETHER.begun() + 1..TOGETHER.begun() + 4 {
        if let Err(error) = TOGETHER.try_set(next, || sites::batch(next).apply()) {
            eprintln!("torture: in a child: {error}");
            violation::exit(&Violation::of_program("a child could not set"));
        }
        SITES.iter().for_each(|site| site.check(&mut 0));
    }
    // SAFETY: ends the child without running the parent's destructors.
    unsafe { libc::_exit(0) }
}

fn wait(child: libc::pid_t) {
    static STATUS: AtomicI32 = AtomicI32::new(0);
    let deadline = Instant::now() + PATIENCE;
    // SAFETY: the child is ours.
    while unsafe { libc::waitpid(child, STATUS.as_ptr(), libc::WNOHANG) } == 0 {
        if Instant::now() > deadline {
            // SAFETY: the child is ours.
            unsafe { libc::kill(child, libc::SIGKILL) };
            violation::exit(&Violation::of_program("a child hangs"));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    let status = STATUS.load(SeqCst);
    if !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != 0 {
        violation::exit(&Violation::of_program("a child was killed or saw a violation"));
    }
}
