//! This thread's signals, held back while code changes under it.
//!
//! Where a batch changes code without traps, a signal handler that ran in the middle of it, on the
//! thread that changes, would execute half an instruction.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ptr;

/// A set of every signal, for the mask of a handler: the two that are the C library's own as well,
/// which its `sigfillset` leaves out.
pub(super) fn every() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the kernel's set of 64 signals lies at the beginning of the C library's.
    unsafe {
        set.as_mut_ptr().cast::<[u8; 8]>().write([0xff; 8]);
        set.assume_init()
    }
}

/// All signals of the calling thread are held back until this is dropped.
#[derive(Debug)]
pub struct HeldBack {
    before: libc::sigset_t,
}

/// Holds back all signals of the calling thread.
#[must_use]
pub fn hold_back() -> HeldBack {
    let mut every = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: sets that we own; changes this thread's mask, which the drop puts back.
    unsafe {
        libc::sigfillset(every.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, every.as_ptr(), before.as_mut_ptr());
        HeldBack { before: before.assume_init() }
    }
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        // SAFETY: the mask that this thread had.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut());
        }
    }
}
