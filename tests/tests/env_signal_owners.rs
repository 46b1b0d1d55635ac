//! Runtimes that own the signals of the process. In the manner of Go: a handler for every signal, on
//! alternate stacks, with all signals blocked or with none, over threads with small stacks. In the
//! manner of the JVM: a page that is closed to bring every thread to a safepoint, where it waits in its
//! handler of SIGSEGV. What would go wrong: a handler of theirs replaced, a signal of theirs used, a
//! thread that waits in its own handler killed by a trap or waited for without end.

#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use immediate::Protocol;
use immediate_tests::signals::{self, Targets};
use immediate_tests::{child, has_sites};

#[path = "environment/mod.rs"]
mod environment;

use environment::{Reader, Went, among_readers, read, sets, sets_as_foreseen};

immediate_tests::scenarios!(like_go, like_go_with_open_masks, like_the_jvm);

static HANDLED: AtomicU64 = AtomicU64::new(0);
static TARGETS: Targets = Targets::new();

extern "C" fn handle(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    HANDLED.fetch_add(1, SeqCst);
}

/// A handler for every signal that can have one, but those of the C library and what `but` says.
fn own_all(mask: libc::sigset_t, but: &[libc::c_int]) -> Vec<libc::c_int> {
    let flags = libc::SA_ONSTACK | libc::SA_RESTART;
    let fixed = [libc::SIGKILL, libc::SIGSTOP, libc::SIGCHLD, 32, 33];
    let owned = (1..=libc::SIGRTMAX())
        .filter(|signal| !fixed.contains(signal) && !but.contains(signal))
        .collect::<Vec<_>>();
    for signal in &owned {
        signals::install(*signal, handle, mask, flags);
    }
    owned
}

/// All of them still belong to the runtime.
fn assert_owned(signals: &[libc::c_int], but: &[libc::c_int]) {
    for signal in signals.iter().filter(|signal| !but.contains(signal)) {
        let found = signals::current(*signal).sa_sigaction;
        assert_eq!(found, handle as extern "C" fn(_, _, _) as usize, "signal {signal}");
    }
}

/// Sets while threads with small stacks read and are struck by the signal that preempts.
fn sets_among_small_stacks(times: u64) -> Went {
    static STOP: AtomicBool = AtomicBool::new(false);
    struct Stop;
    impl Drop for Stop {
        fn drop(&mut self) {
            STOP.store(true, SeqCst);
        }
    }
    STOP.store(false, SeqCst);
    std::thread::scope(|scope| {
        let _stop = Stop;
        for _ in 0..2 {
            // Rust gives each thread an alternate stack.
            let small = std::thread::Builder::new().stack_size(16 * 1024);
            let thread = small.spawn_scoped(scope, || {
                TARGETS.add_own();
                let mut reader = Reader::new();
                while !STOP.load(SeqCst) {
                    reader.look();
                }
            });
            thread.expect("a thread");
        }
        let mut went = Went::default();
        signals::storm(&TARGETS, libc::SIGURG, Duration::from_millis(2), || {
            went = sets_as_foreseen(&mut 0, times);
        });
        went
    })
}

/// Every signal is taken, and blocks every other while it is handled: nothing is left but a protocol
/// without signals.
fn like_go() {
    let owned = own_all(signals::every(), &[]);
    let went = sets_among_small_stacks(20);
    assert!(HANDLED.load(SeqCst) > 0);
    assert_owned(&owned, &[]);
    if !has_sites() {
        return;
    }
    assert!(!went.protocols.contains(&Protocol::Int3), "{went:?}");
    if let Some(error) = went.error {
        assert!(error.contains("blocks SIGTRAP while it runs"), "{error}");
        assert!(error.contains("handles every real-time signal itself"), "{error}");
    } else {
        assert_eq!(went.protocols, [Protocol::Quadword]);
    }
}

/// Masks that leave SIGTRAP open, as the error asks for: traps work, and what is not ours is passed on.
fn like_go_with_open_masks() {
    let owned = own_all(signals::set_of(&[]), &[]);
    let went = sets_among_small_stacks(500);
    assert_eq!(went.refused, 0);
    assert_owned(&owned, &[libc::SIGTRAP]);
    if has_sites() {
        assert_eq!(went.protocols, [Protocol::Int3]);
    }
    let before = HANDLED.load(SeqCst);
    signals::strike(signals::own_id(), libc::SIGTRAP);
    assert_eq!(HANDLED.load(SeqCst), before + 1, "it still has its SIGTRAP");
}

/// The page that every thread looks at now and then.
static PAGE: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static SAFEPOINT: AtomicBool = AtomicBool::new(false);
static WAITED: AtomicU64 = AtomicU64::new(0);

fn close_page(is_closed: bool) {
    let protection = if is_closed { libc::PROT_NONE } else { libc::PROT_READ };
    // SAFETY: a page of our own that threads only read; who finds it closed waits in the handler.
    let done = unsafe { libc::mprotect(PAGE.load(SeqCst).cast(), 4096, protection) };
    assert_eq!(done, 0);
}

/// Waits until the safepoint is over, then reads the page again.
extern "C" fn poll_page(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel's description of a fault.
    let address = unsafe { (*info).si_addr() };
    if !ptr::eq(address.cast(), PAGE.load(SeqCst)) {
        // SAFETY: a fault that is not of the page.
        unsafe { libc::_exit(99) };
    }
    while SAFEPOINT.load(SeqCst) {
        // A site in the handler, as code of the runtime may have.
        std::hint::black_box(read());
        std::hint::spin_loop();
    }
    WAITED.fetch_add(1, SeqCst);
}

fn like_the_jvm() {
    // SAFETY: maps a page of our own.
    let page = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(ptr::null_mut(), 4096, libc::PROT_READ, flags, -1, 0)
    };
    assert_ne!(page, libc::MAP_FAILED);
    PAGE.store(page.cast(), SeqCst);
    // All signals blocked but those that a fault raises, as that runtime does.
    let mut mask = signals::every();
    for open in [libc::SIGILL, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV, libc::SIGTRAP] {
        // SAFETY: changes a set that we own.
        unsafe { libc::sigdelset(&raw mut mask, open) };
    }
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL] {
        signals::install(signal, poll_page, mask, libc::SA_ONSTACK | libc::SA_RESTART);
    }
    for signal in [libc::SIGQUIT, libc::SIGUSR2] {
        signals::install(signal, handle, mask, libc::SA_ONSTACK | libc::SA_RESTART);
    }
    static STOP: AtomicBool = AtomicBool::new(false);
    struct Stop;
    impl Drop for Stop {
        fn drop(&mut self) {
            SAFEPOINT.store(false, SeqCst);
            STOP.store(true, SeqCst);
        }
    }
    std::thread::scope(|scope| {
        let _stop = Stop;
        for _ in 0..2 {
            scope.spawn(|| {
                // Room for a trap on top of the handler.
                let _stack = immediate_tests::alternate_stack::AlternateStack::install();
                TARGETS.add_own();
                let mut reader = Reader::new();
                while !STOP.load(SeqCst) {
                    reader.look();
                    // SAFETY: a page of our own; closed, the handler waits.
                    std::hint::black_box(unsafe { PAGE.load(SeqCst).read_volatile() });
                }
            });
        }
        let safepoints = scope.spawn(|| {
            for _ in 0..100 {
                SAFEPOINT.store(true, SeqCst);
                close_page(true);
                std::thread::sleep(Duration::from_millis(2));
                close_page(false);
                SAFEPOINT.store(false, SeqCst);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let mut generation = 0;
        signals::storm(&TARGETS, libc::SIGUSR2, Duration::from_millis(3), || {
            while !safepoints.is_finished() {
                let went = among_readers(1, || sets(&mut generation, 20));
                // A thread that waits longer than a stop of the world waits for it makes that fail.
                let may_fail =
                    std::env::var("IMMEDIATE_PROTOCOL").is_ok_and(|it| it == "stop-world");
                assert!(went.refused == 0 || may_fail);
            }
        });
        safepoints.join().expect("as asserted");
    });
    println!("{} waits at safepoints, {} signals", WAITED.load(SeqCst), HANDLED.load(SeqCst));
    assert!(WAITED.load(SeqCst) > 0 && HANDLED.load(SeqCst) > 0);
    assert_eq!(
        signals::current(libc::SIGSEGV).sa_sigaction,
        poll_page as extern "C" fn(_, _, _) as usize
    );
}

#[test]
fn an_owner_of_all_signals_keeps_them() {
    child::succeed("like_go", &[]);
    child::succeed("like_go", &[("IMMEDIATE_PROTOCOL", "quadword")]);
}

#[test]
fn an_owner_of_all_signals_that_leaves_traps_open_has_the_best_protocol() {
    child::succeed("like_go_with_open_masks", &[]);
}

#[test]
fn threads_that_wait_at_a_safepoint_are_no_hindrance() {
    child::succeed("like_the_jvm", &[("IMMEDIATE_PROTOCOL", "int3")]);
    child::succeed("like_the_jvm", &[("IMMEDIATE_PROTOCOL", "quadword")]);
    child::succeed("like_the_jvm", &[("IMMEDIATE_PROTOCOL", "stop-world")]);
}
