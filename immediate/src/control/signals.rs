//! What signals the threads of this module take: none that the program may wait for.
//!
//! SIGTRAP and the real-time signals stay open, because a set needs them in every thread, and so do
//! those that a fault of the thread itself raises.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ptr;

const OPEN: &[libc::c_int] = &[
    libc::SIGTRAP,
    libc::SIGILL,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGSYS,
];

/// The highest number of a standard signal (`signal(7)`).
const STANDARD: libc::c_int = 31;

/// Blocks the other standard signals in the calling thread.
pub(super) fn leave_to_the_program() {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the set is made before it is used; the numbers are signals.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in (1..=STANDARD).filter(|signal| !OPEN.contains(signal)) {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut());
    }
}
