//! The handler of SIGTRAP.
//!
//! # What the handler may do
//!
//! Read its own arguments, the published batch, the known sites, the code of the site; write the
//! registers of the trapped thread. Nothing else: no lock, no allocation, no thread-local, no
//! `errno`, no site, no store that another thread reads. A counter shared by handlers cost the
//! kernel a factor of 4000 at 480 threads. Only a trap that is not ours goes further, to whoever
//! had the signal before.
//!
//! While it runs, every signal but SIGTRAP and those that a fault raises is held back. Its frame
//! lies on the alternate stack, if the thread has one, and the one that Rust's threads have holds one
//! frame and no more (`AT_MINSIGSTKSZ`, 11 KiB where there is AMX): a second signal on top would end
//! the process. SIGTRAP itself stays open, so that a thread in the handler does not count as one that
//! blocks it.
//!
//! # Invariants
//!
//! * `H1` `PREVIOUS` is written before the handler is installed and never afterwards.

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use super::context::{self, Context};
use super::{Failure, action_of};
use crate::chain::CHAIN;
use crate::isa::imp;
use crate::known;
use crate::published::{self, Phase};
use crate::status::Reason;

struct Previous(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: H1.
unsafe impl Sync for Previous {}

static PREVIOUS: Previous = Previous(UnsafeCell::new(MaybeUninit::zeroed()));
static INSTALLED: AtomicBool = AtomicBool::new(false);
/// The previous handler asked to be called once (`SA_RESETHAND`) and has been.
static PREVIOUS_SPENT: AtomicBool = AtomicBool::new(false);

fn current() -> Result<libc::sigaction, Failure> {
    let call = "sigaction(SIGTRAP)";
    Failure::due(call)?;
    action_of(libc::SIGTRAP).map_err(|failure| Failure { call, ..failure })
}

fn ours() -> usize {
    handle as extern "C" fn(_, _, _) as usize
}

/// Looks whether our handler, if it was installed, still is the handler; installs nothing.
///
/// # Errors
///
/// [`Reason::HandlerReplaced`] when someone took the signal since: we may not take it back, because
/// that handler may pass on to ours, and two that pass on to each other never end. Another runtime's
/// handler is known to pass on to ours, and not the other way round.
pub fn look() -> Result<(), Reason> {
    let found = current().map_err(Reason::Failed)?;
    if INSTALLED.load(Ordering::Relaxed) && !CHAIN.is_reached_from(found.sa_sigaction) {
        return Err(Reason::HandlerReplaced);
    }
    Ok(())
}

/// Installs the handler, once.
///
/// The caller owns the patcher.
///
/// # Errors
///
/// The failure of `sigaction`.
pub fn install() -> Result<(), Reason> {
    if INSTALLED.load(Ordering::Relaxed) {
        return Ok(());
    }
    let found = current().map_err(Reason::Failed)?;
    // SAFETY: H1; not yet installed, and the caller owns the patcher.
    unsafe { (*PREVIOUS.0.get()).write(found) };
    // SAFETY: a zeroed action is valid; the fields that matter are set.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = ours();
    // SA_RESTART as the previous owner had it, for signals that were sent and are passed on.
    action.sa_mask = held_back();
    action.sa_flags = libc::SA_SIGINFO
        | libc::SA_ONSTACK
        | libc::SA_NODEFER
        | (found.sa_flags & libc::SA_RESTART);
    // SAFETY: `handle` is async-signal-safe by the rules above.
    if unsafe { libc::sigaction(libc::SIGTRAP, &raw const action, ptr::null_mut()) } != 0 {
        return Err(Reason::Failed(Failure::last("sigaction(SIGTRAP)")));
    }
    CHAIN.begins(ours(), found.sa_sigaction);
    INSTALLED.store(true, Ordering::Relaxed);
    Ok(())
}

/// What is held back while the handler runs.
fn held_back() -> libc::sigset_t {
    // SAFETY: changes a set that we own.
    unsafe {
        let mut set = super::mask::every();
        for open in [libc::SIGTRAP, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE] {
            libc::sigdelset(&raw mut set, open);
        }
        set
    }
}

/// A handler with `SA_SIGINFO`.
type Informed = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Where the trapped thread may have been sent on, so that the fast way is one call.
enum Verdict {
    Handled,
    NotOurs,
}

extern "C" fn handle(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    raw_context: *mut libc::c_void,
) {
    // SAFETY: with SA_SIGINFO the kernel passes the thread's context, which is ours until we
    // return.
    let thread = unsafe { &mut *raw_context.cast::<Context>() };
    match resume(thread) {
        Verdict::Handled => {}
        Verdict::NotOurs => pass_on(signal, info, raw_context),
    }
}

fn resume(thread: &mut Context) -> Verdict {
    let site = context::pc(thread).wrapping_sub(imp::TRAP_ADVANCE);
    loop {
        let (moment, found) = published::find(site);
        if let Some((poke, phase)) = found {
            let field = match phase {
                Phase::Old => poke.old,
                Phase::New => poke.new,
            };
            context::apply(thread, imp::effect(&poke, field));
            return Verdict::Handled;
        }
        if !known::is_site(site) {
            return Verdict::NotOurs;
        }
        // A site, but of no batch: the trap may be older than the end of its batch.
        // SAFETY: the site lies in the text that this thread is executing, so it is readable.
        if !unsafe { holds_trap(site) } {
            context::set_pc(thread, site);
            return Verdict::Handled;
        }
        if published::is_now(moment) {
            // A trap byte at a site of no current batch is somebody else's (invariant P4).
            return Verdict::NotOurs;
        }
        // A batch began or ended while we looked: look again.
    }
}

/// Whether a trap stands at a site.
///
/// # Safety
///
/// A site is readable there; where a trap is a word, sites are aligned to words.
unsafe fn holds_trap(site: usize) -> bool {
    // SAFETY: by the caller.
    unsafe {
        match *imp::TRAP {
            [a, b, c, d] => {
                let word = AtomicU32::from_ptr(site as *mut u32).load(Ordering::SeqCst);
                word.to_ne_bytes() == [a, b, c, d]
            }
            [byte] => AtomicU8::from_ptr(site as *mut u8).load(Ordering::SeqCst) == byte,
            _ => false,
        }
    }
}

/// Gives the trap to whoever had the signal before, as the kernel would have.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, raw_context: *mut libc::c_void) {
    // SAFETY: H1; we are the handler, so it was written.
    let previous = unsafe { (*PREVIOUS.0.get()).assume_init_ref() };
    // SAFETY: the kernel passes the signal's information.
    let sent_by_a_process = unsafe { (*info).si_code } <= 0;
    match previous.sa_sigaction {
        libc::SIG_IGN if sent_by_a_process => {}
        libc::SIG_DFL | libc::SIG_IGN => die(signal, info),
        _ if PREVIOUS_SPENT.load(Ordering::Relaxed) => die(signal, info),
        handler => {
            if previous.sa_flags & libc::SA_RESETHAND != 0 {
                PREVIOUS_SPENT.store(true, Ordering::Relaxed);
            }
            // SAFETY: with SA_SIGINFO the kernel passes the thread's context.
            set_mask(unsafe { &*raw_context.cast() }, previous);
            if previous.sa_flags & libc::SA_SIGINFO != 0 {
                // SAFETY: with SA_SIGINFO the address is a function of this type.
                let handler: Informed = unsafe { std::mem::transmute(handler) };
                handler(signal, info, raw_context);
            } else {
                // SAFETY: without SA_SIGINFO the address is a function of this type.
                let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
                handler(signal);
            }
            // The mask goes back to what it was when the kernel restores the thread.
        }
    }
}

/// Blocks what the interrupted code blocked and what the previous handler asked for, as the kernel
/// would have; never SIGTRAP: a site in that handler may trap.
fn set_mask(interrupted: &Context, previous: &libc::sigaction) {
    let mut mask = previous.sa_mask;
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: reads the kernel's set, which ends with its last signal; changes a set that we own.
        unsafe {
            if libc::sigismember(&raw const interrupted.uc_sigmask, signal) == 1 {
                libc::sigaddset(&raw mut mask, signal);
            }
        }
    }
    // SAFETY: changes a set that we own, then this thread's mask; neither call fails, so `errno` is
    // not written.
    unsafe {
        libc::sigdelset(&raw mut mask, libc::SIGTRAP);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, ptr::null_mut());
    }
}

/// Ends the process as the default action does, with the signal's own information.
fn die(signal: libc::c_int, info: *mut libc::siginfo_t) {
    // SAFETY: sets the default action and queues the signal to this very thread, which is not
    // blocking it; both calls are async-signal-safe.
    unsafe {
        let mut default: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &raw const default, ptr::null_mut());
        let (process, thread) = (libc::getpid(), libc::syscall(libc::SYS_gettid));
        libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info);
    }
}
