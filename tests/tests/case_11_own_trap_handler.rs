//! A program with a SIGTRAP handler of its own. Installed before the first set: a genuine trap of
//! the program reaches it with its full `siginfo`, and the program goes on. Installed after: the
//! next set notices before it writes anything, and no thread dies. What would go wrong: a crash
//! reporter that no longer reports, a process killed by a trap of ours that nobody takes.
//!
//! CASES 11 (seen in bugsnag-js, issue 1527; libdatadog, issue 374).

#![allow(unsafe_code)]
// The width of the variable differs from target to target.
#![allow(clippy::useless_conversion)]

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering::SeqCst};

use immediate::{Batch, Error, Immediate, Protocol, Reason, Refusal};
use immediate::{immediate, immediate_if, immediate_read};
use immediate_tests::scatter::{Wide, gather_wide, scatter_wide};
use immediate_tests::{child, maps, signals};

#[immediate]
static WIDE: Immediate<Wide> = Immediate::new(0);
#[immediate]
static ODD: Immediate<bool> = Immediate::new(false);

immediate_tests::scenarios!(
    installed_before,
    installed_before_once,
    installed_before_plain,
    default_before,
    ignored_before,
    installed_after
);

const SETS: u64 = 1_000;

static OWN: AtomicU64 = AtomicU64::new(0);
static SIGNAL: AtomicI32 = AtomicI32::new(0);
static CODE: AtomicI32 = AtomicI32::new(0);
static VALUE: AtomicUsize = AtomicUsize::new(0);
static BLOCKED: AtomicBool = AtomicBool::new(false);
static SITE: AtomicU64 = AtomicU64::new(0);

fn note(signal: libc::c_int) {
    SIGNAL.store(signal, SeqCst);
    let mut set = signals::set_of(&[]);
    // SAFETY: reads the mask of this thread into a set that we own.
    let blocked = unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut set);
        libc::sigismember(&raw const set, libc::SIGUSR2)
    };
    BLOCKED.store(blocked == 1, SeqCst);
    // A site in this handler is read like any other.
    SITE.store(immediate_read!(WIDE).into(), SeqCst);
    OWN.fetch_add(1, SeqCst);
}

extern "C" fn own(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel's description of the signal, passed on.
    let info = unsafe { &*info };
    CODE.store(info.si_code, SeqCst);
    if info.si_code == libc::SI_QUEUE {
        // SAFETY: a queued signal carries a value.
        VALUE.store(unsafe { info.si_value() }.sival_ptr.addr(), SeqCst);
    }
    note(signal);
}

extern "C" fn plain(signal: libc::c_int) {
    note(signal);
}

fn set(generation: u64) -> Result<(), Error> {
    Batch::new().set(&WIDE, scatter_wide(generation)).set(&ODD, generation % 2 == 1).apply()
}

/// Runs `body` while two threads read.
fn among_readers(body: impl FnOnce() + std::panic::UnwindSafe) {
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reads in &READS {
            scope.spawn(move || {
                let mut last = 0;
                while !stop.load(SeqCst) {
                    let generation = gather_wide(immediate_read!(WIDE)).expect("no mixture");
                    assert!(generation >= last, "{generation} after {last}");
                    std::hint::black_box(immediate_if!(ODD));
                    last = generation;
                    reads.fetch_add(1, SeqCst);
                }
            });
        }
        every_reader_goes_on(500);
        let result = std::panic::catch_unwind(body);
        stop.store(true, SeqCst);
        result.expect("as asserted");
    });
}

/// What each reader has read.
static READS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Waits until each reader has read so often from now on: none stands at a trap from before.
fn every_reader_goes_on(times: u64) {
    for reads in &READS {
        let from = reads.load(SeqCst);
        while reads.load(SeqCst) < from + times {
            std::thread::yield_now();
        }
    }
}

/// A breakpoint of the program's own.
fn genuine_trap() {
    cfg_select! {
        // SAFETY: a handler takes it, or the process ends.
        any(target_arch = "x86_64", target_arch = "x86") => unsafe { std::arch::asm!("int3", options(nostack)) },
        // SAFETY: as above.
        _ => unsafe { libc::raise(libc::SIGTRAP); },
    }
}

fn queue(value: usize) {
    let value = libc::sigval { sival_ptr: std::ptr::without_provenance_mut(value) };
    // SAFETY: to this process.
    let done = unsafe { libc::sigqueue(libc::getpid(), libc::SIGTRAP, value) };
    assert_eq!(done, 0);
}

fn set_many(from: u64) {
    for generation in from..from + SETS {
        set(generation).expect("every thread can trap");
    }
    if immediate_tests::has_sites() {
        assert_eq!(immediate::status().last.expect("code was changed").protocol, Protocol::Int3);
    }
    assert_eq!(OWN.load(SeqCst), 0, "our traps do not reach the program's handler");
}

fn installed_before() {
    signals::install(libc::SIGTRAP, own, signals::set_of(&[libc::SIGUSR2]), 0);
    among_readers(|| {
        set_many(1);
        for round in 1..=100 {
            genuine_trap();
            assert_eq!(OWN.load(SeqCst), round);
            assert_eq!(SIGNAL.load(SeqCst), libc::SIGTRAP);
            if cfg!(any(target_arch = "x86_64", target_arch = "x86")) {
                // What the kernel says of an `int3` (signal(7), SI_KERNEL).
                assert_eq!(CODE.load(SeqCst), libc::SI_KERNEL);
            }
            assert!(BLOCKED.load(SeqCst), "its own mask is in force while it runs");
            assert_eq!(SITE.load(SeqCst), u64::from(immediate_read!(WIDE)));
            set(SETS + round).expect("a trap of the program's changes nothing");
        }
        signals::mask(libc::SIG_BLOCK, &signals::set_of(&[]));
    });
    // Only this thread is left, so it is the one that takes it.
    queue(0xabcd);
    assert_eq!((OWN.load(SeqCst), CODE.load(SeqCst)), (101, libc::SI_QUEUE));
    assert_eq!(VALUE.load(SeqCst), 0xabcd, "the value that was sent");
}

fn installed_before_plain() {
    signals::install_raw(
        libc::SIGTRAP,
        plain as extern "C" fn(_) as usize,
        signals::set_of(&[]),
        0,
    );
    among_readers(|| {
        set_many(1);
        genuine_trap();
        genuine_trap();
        assert_eq!(OWN.load(SeqCst), 2);
        assert_eq!(SIGNAL.load(SeqCst), libc::SIGTRAP);
    });
}

/// It asked to be called once: the second trap takes the default action.
fn installed_before_once() {
    signals::install(libc::SIGTRAP, own, signals::set_of(&[]), libc::SA_RESETHAND);
    among_readers(|| {
        set_many(1);
        genuine_trap();
        assert_eq!(OWN.load(SeqCst), 1);
        println!("once");
        genuine_trap();
        println!("twice");
    });
}

fn trap_kills(action: libc::sighandler_t) {
    signals::install_raw(libc::SIGTRAP, action, signals::set_of(&[]), 0);
    among_readers(|| {
        set_many(1);
        println!("once");
        genuine_trap();
        println!("twice");
    });
}

fn default_before() {
    trap_kills(libc::SIG_DFL);
}

/// A trap of a processor cannot be ignored: the kernel ends the process, and so do we.
fn ignored_before() {
    trap_kills(libc::SIG_IGN);
}

fn installed_after() {
    among_readers(|| {
        set_many(1);
        // The kernel looks the handler up when it delivers the signal: a thread that has trapped and
        // been held up since would be given to the new handler.
        every_reader_goes_on(2);
        let ours = signals::install(libc::SIGTRAP, own, signals::set_of(&[]), 0);
        let before = WIDE.get();
        for generation in SETS + 1..2 * SETS {
            match set(generation) {
                Ok(()) => assert_eq!(immediate_read!(WIDE), scatter_wide(generation)),
                Err(Error::Refused(Refusal::NoProtocol(_))) => assert_eq!(WIDE.get(), before),
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(OWN.load(SeqCst), 0, "no trap of ours was written");
        if immediate_tests::has_sites() {
            let status = immediate::status();
            println!("{status}");
            let replaced = |one: &immediate::Rejected| {
                one.protocol == Protocol::Int3 && one.reason == Reason::HandlerReplaced
            };
            assert!(status.rejected.iter().any(replaced), "{:?}", status.rejected);
            assert_ne!(status.protocol, Some(Protocol::Int3));
            // Text is as it was.
            maps::assert_text_is_read_only(maps::sites_of(WIDE.name())[0]);
        }
        genuine_trap();
        assert_eq!(OWN.load(SeqCst), 1, "it has the signal to itself");
        if immediate_tests::has_sites() {
            // Given back, it is used again.
            signals::install_raw(libc::SIGTRAP, ours.sa_sigaction, ours.sa_mask, ours.sa_flags);
            set(2 * SETS).expect("every thread can trap");
            let last = immediate::status().last.expect("code was changed");
            assert_eq!(last.protocol, Protocol::Int3);
        }
    });
}

#[test]
fn a_handler_from_before_gets_the_programs_traps() {
    child::succeed("installed_before", &[]);
    child::succeed("installed_before_plain", &[]);
}

#[test]
fn a_trap_without_handler_kills_as_ever() {
    for scenario in ["default_before", "ignored_before", "installed_before_once"] {
        let ended = child::run(scenario, &[]);
        assert!(ended.out.contains("once") && !ended.out.contains("twice"), "{ended:#?}");
        assert_eq!(ended.signal, Some(libc::SIGTRAP), "{scenario}: {ended:#?}");
    }
}

#[test]
fn a_handler_from_after_is_noticed() {
    child::succeed("installed_after", &[]);
    child::succeed("installed_after", &[("IMMEDIATE_PROTOCOL", "int3")]);
}
