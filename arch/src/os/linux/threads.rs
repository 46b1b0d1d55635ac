//! The threads of the process: how many, and whether each of them can take a trap.
//!
//! `int3` in a thread that blocks SIGTRAP kills the process and resets the handler
//! (`force_sig_info_to_task` in the kernel), so a batch that uses traps looks first. Two things can
//! block it: the mask of a thread, read in `/proc/self/task/TID/stat`, and the mask of a handler
//! that is installed for another signal, in force while that handler runs.
//!
//! A thread that waits in `ppoll`, `pselect`, `epoll_pwait` or `sigsuspend` with a mask for the time of
//! the call shows that mask, and not the one that it has.
//!
//! No descriptor is kept between batches: a program may close those that it does not know, and open
//! a file of its own under the same number.

#![allow(unsafe_code)]

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use super::task::Directory;
use super::{Failure, action_of, barrier, emulator, own_id, stop};
use crate::status::Reason;

/// libc blocks all signals for moments, while it creates a thread; a block that lasts longer than
/// `TRIES` times this is meant.
const PAUSE: Duration = Duration::from_micros(100);
const TRIES: usize = 1000;
/// The thread that was last found to block SIGTRAP.
static BLOCKED_BEFORE: AtomicI32 = AtomicI32::new(0);
/// How long a thread may stay inside the C library with its signals blocked.
const LIBC_PATIENCE: Duration = Duration::from_secs(2);

/// Whether the calling thread is the only one of the process, and no other process runs in its
/// memory.
///
/// `false` also where that cannot be known. The kernel counts the threads in the links of
/// `/proc/self/task` (`proc_task_getattr`): two, and one a thread.
#[must_use]
pub fn is_alone() -> bool {
    if Failure::due("stat(/proc/self/task)").is_err() {
        return false;
    }
    match std::fs::metadata("/proc/self/task") {
        Ok(task) => match task.nlink() {
            3 => shares_memory() != Some(true),
            4 if emulator::is_there() => is_alone_but_for_emulator(),
            _ => false,
        },
        Err(_) => shares_memory() == Some(false),
    }
}

fn is_alone_but_for_emulator() -> bool {
    let own = own_id();
    Directory::open().is_ok_and(|directory| {
        directory.all().is_ok_and(|threads| {
            threads.iter().all(|one| *one == own || emulator::owns(&directory, *one))
        })
    })
}

/// Whether another thread, or a process made by `vfork` or `clone(CLONE_VM)`, uses this memory;
/// `None` where that is not told.
///
/// `unshare(CLONE_VM)` is documented to fail with `EINVAL` if so, and to do nothing if not. It is not
/// tried under a filter, which may kill who makes an unusual call.
fn shares_memory() -> Option<bool> {
    if barrier::surroundings().is_filtered() {
        return None;
    }
    // SAFETY: takes a number, and changes nothing (`unshare(2)`).
    match unsafe { libc::unshare(libc::CLONE_VM) } {
        0 => Some(false),
        _ => (Failure::last("unshare").errno == libc::EINVAL).then_some(true),
    }
}

/// Looks whether every thread can take a SIGTRAP, now and in every handler; gives the process that
/// traces this one, if one does.
///
/// A thread that blocks it is waited for, since it may do so for a moment; in a `hurry` not the one
/// that has been waited for in vain before.
///
/// # Errors
///
/// The first reason found why not, or why it cannot be known.
pub fn can_all_trap(hurry: bool) -> Result<Option<i32>, Reason> {
    let own = own_id();
    if own_mask() & trap_bit() != 0 {
        return Err(Reason::ThreadBlocksTrap { thread: own });
    }
    let directory = Directory::open()?;
    // The handlers are those of the process: one thread's `status` tells them, and costs twice as
    // much as `stat`. Where none tells, each signal may have a handler.
    let (mut caught, mut tracer) = (None, 0);
    for thread in directory.all()?.into_iter().filter(|thread| *thread != own) {
        if caught.is_none()
            && let Some(status) = directory.status(thread).map_err(unknown)?
        {
            (caught, tracer) = (Some(status.caught), status.tracer);
            let is_open = status.blocked & trap_bit() == 0;
            if is_open && !waits_for_trap(&directory, thread, status.state) {
                continue;
            }
        }
        settle(&directory, thread, hurry)?;
    }
    if caught.is_none()
        && let Some(status) = directory.status(own).map_err(unknown)?
    {
        // No other thread tells; this one does.
        (caught, tracer) = (Some(status.caught), status.tracer);
    }
    can_trap_in_handlers(caught.unwrap_or(u64::MAX))?;
    Ok((tracer != 0).then_some(tracer))
}

/// Waits until a thread can trap, if it blocks SIGTRAP only for a moment.
fn settle(directory: &Directory, thread: i32, hurry: bool) -> Result<(), Reason> {
    if emulator::owns(directory, thread) {
        return Ok(());
    }
    let (mut tries, started) = (0, Instant::now());
    let is_known = BLOCKED_BEFORE.load(Ordering::Relaxed) == thread;
    let enough = if hurry && is_known { 1 } else { TRIES };
    while tries < enough {
        match directory.stat(thread).map_err(unknown)? {
            None => return Ok(()),
            Some(stat) if stat.has_ended() || stat.is_kernels() => return Ok(()),
            Some(stat)
                if stat.blocked & trap_bit() == 0
                    && !waits_for_trap(directory, thread, stat.state) =>
            {
                return Ok(());
            }
            // Only the C library itself can block its own two signals, and it runs no code of the
            // program then: that passes, however long the thread waits for a processor.
            Some(_)
                if is_within_libc(directory, thread) && started.elapsed() < LIBC_PATIENCE => {}
            Some(_) => tries += 1,
        }
        std::thread::sleep(PAUSE);
    }
    BLOCKED_BEFORE.store(thread, Ordering::Relaxed);
    Err(Reason::ThreadBlocksTrap { thread })
}

fn unknown(failure: Failure) -> Reason {
    Reason::ThreadsUnknown { errno: failure.errno }
}

/// Whether a thread in this state waits for SIGTRAP: it blocks it then, and runs on with it blocked.
fn waits_for_trap(directory: &Directory, thread: i32, state: u8) -> bool {
    state == b'S' && directory.waits_for(thread, libc::SIGTRAP)
}

/// Looks at the masks of the handlers that are installed; `caught` holds the signals that have one.
fn can_trap_in_handlers(caught: u64) -> Result<(), Reason> {
    for signal in 1..=libc::SIGRTMAX() {
        if caught & bit(signal) != 0 && signal != libc::SIGTRAP && handler_blocks_trap(signal) {
            return Err(Reason::HandlerBlocksTrap { signal });
        }
    }
    Ok(())
}

/// Whether a thread blocks the two signals that are the C library's own (`nptl(7)`), which
/// `pthread_sigmask` never does. `stat` shows the first 31 signals, `status` all.
fn is_within_libc(directory: &Directory, thread: i32) -> bool {
    let own = bit(32) | bit(33);
    directory.status(thread).is_ok_and(|status| {
        status.is_some_and(|status| status.blocked & own == own)
    })
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

fn trap_bit() -> u64 {
    bit(libc::SIGTRAP)
}

fn own_mask() -> u64 {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: reads the mask into a set that we own; a zeroed set is valid.
    let set = unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), set.as_mut_ptr());
        set.assume_init()
    };
    // SAFETY: reads the set.
    if unsafe { libc::sigismember(&raw const set, libc::SIGTRAP) } == 1 { trap_bit() } else { 0 }
}

fn handler_blocks_trap(signal: i32) -> bool {
    let Ok(action) = action_of(signal) else { return false };
    action.sa_sigaction != libc::SIG_DFL
        && action.sa_sigaction != libc::SIG_IGN
        // Ours contains no site.
        && action.sa_sigaction != stop::handler()
        // SAFETY: reads the set.
        && unsafe { libc::sigismember(&raw const action.sa_mask, libc::SIGTRAP) } == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_a_thread_and_its_mask() {
        let (told, hear) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            // SAFETY: blocks a signal in this thread alone.
            unsafe {
                let mut set = std::mem::zeroed();
                libc::sigaddset(&raw mut set, libc::SIGTRAP);
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            }
            told.send(own_id()).expect("the test listens");
            let _ = stopped.recv();
        });
        let thread_id = hear.recv().expect("the thread tells its id");
        assert!(!is_alone());
        assert_eq!(
            can_all_trap(false),
            Err(Reason::ThreadBlocksTrap { thread: thread_id })
        );
        drop(stop);
        thread.join().expect("the thread ends");
    }
}
