//! Signal handlers, masks and a storm of signals.

#![allow(unsafe_code)]

use crate::counter::AtomicU64;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A handler that takes everything.
pub type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// A set of signals.
#[must_use]
pub fn set_of(signals: &[libc::c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: initialises and fills a set that we own.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}

/// Every signal.
#[must_use]
pub fn every() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: initialises and fills a set that we own.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Installs a handler; gives the action that it replaces.
///
/// # Panics
///
/// If the kernel refuses.
pub fn install(
    signal: libc::c_int,
    handler: Handler,
    mask: libc::sigset_t,
    flags: libc::c_int,
) -> libc::sigaction {
    install_raw(signal, handler as usize, mask, flags | libc::SA_SIGINFO)
}

/// Installs `SIG_DFL` or `SIG_IGN`, or any handler by its address.
///
/// # Panics
///
/// If the kernel refuses.
pub fn install_raw(
    signal: libc::c_int,
    handler: libc::sighandler_t,
    mask: libc::sigset_t,
    flags: libc::c_int,
) -> libc::sigaction {
    // SAFETY: a zeroed action is valid; the fields that matter are set.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_mask = mask;
    action.sa_flags = flags;
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: handlers of tests touch only atomics and sites.
    let done = unsafe { libc::sigaction(signal, &raw const action, before.as_mut_ptr()) };
    assert_eq!(done, 0, "sigaction({signal}): {}", std::io::Error::last_os_error());
    // SAFETY: written by the call that succeeded.
    unsafe { before.assume_init() }
}

/// The action of a signal.
///
/// # Panics
///
/// If the kernel refuses.
#[must_use]
pub fn current(signal: libc::c_int) -> libc::sigaction {
    let mut found = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks for the action into memory that we own.
    let done = unsafe { libc::sigaction(signal, ptr::null(), found.as_mut_ptr()) };
    assert_eq!(done, 0, "sigaction({signal}): {}", std::io::Error::last_os_error());
    // SAFETY: written by the call that succeeded.
    unsafe { found.assume_init() }
}

/// Blocks signals in this thread, with `libc::SIG_BLOCK`, or unblocks them.
pub fn mask(how: libc::c_int, set: &libc::sigset_t) {
    // SAFETY: changes the mask of this thread alone.
    unsafe { libc::pthread_sigmask(how, set, ptr::null_mut()) };
}

/// The kernel's id of this thread.
#[must_use]
pub fn own_id() -> i32 {
    // SAFETY: always succeeds.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Sends a signal to a thread of this process; to one that has ended, nothing.
pub fn strike(thread: i32, signal: libc::c_int) {
    // SAFETY: takes three numbers; the thread is looked for in this process alone.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) };
}

/// Threads that a storm strikes.
#[derive(Debug, Default)]
pub struct Targets(Mutex<Vec<i32>>);

impl Targets {
    /// Nobody.
    #[must_use]
    pub const fn new() -> Self {
        Targets(Mutex::new(Vec::new()))
    }

    /// Adds this thread.
    pub fn add_own(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(own_id());
    }
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Runs `body` while the targets are sent `signal` over and over; gives how many were sent.
///
/// Between two rounds it pauses: a thread that gets signals faster than it handles them, each of
/// them with traps in its handler, would do nothing else any more.
pub fn storm(targets: &Targets, signal: libc::c_int, pause: Duration, body: impl FnOnce()) -> u64 {
    let stop = AtomicBool::new(false);
    let sent = AtomicU64::new(0);
    std::thread::scope(|scope| {
        // Also when the body panics.
        let _stop = Stop(&stop);
        scope.spawn(|| {
            while !stop.load(SeqCst) {
                let threads = targets.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
                for thread in threads {
                    strike(thread, signal);
                    sent.fetch_add(1, SeqCst);
                }
                std::thread::yield_now();
                std::thread::sleep(pause);
            }
        });
        body();
    });
    sent.into_inner()
}
