//! The protocol `stop-world`: every other thread waits in a signal handler while the batch changes.
//!
//! # Steps
//!
//! 1. Stop the world (the steps of `os/linux/stop.rs`).
//! 2. The bytes of every site.
//! 3. The backing values.
//! 4. Let the world go; each thread serialises on its way.
//!
//! Between 1 and 4 nothing is allocated and no lock is taken: a stopped thread may hold it. The text
//! was made writable before and is put back after. One instant for all threads: between 1 and 4
//! nobody reads.
//!
//! It needs neither `membarrier` nor SIGTRAP, but it interrupts system calls of other threads (those
//! that the kernel does not restart return `EINTR`, see `signal(7)`), which is why it comes last.

#![allow(unsafe_code)]

use std::time::Duration;

use super::single;
use crate::os::stop::Stopper;
use crate::os::text::OpenText;
use crate::os::{Failure, mask};
use crate::poke::Poke;
use crate::status::Reason;

/// What stopped a batch on the way.
pub(crate) enum Stop {
    /// The world could not be stopped.
    NotStopped(Reason),
    /// A store into text failed.
    Store(Failure),
}

/// Carries out the steps.
///
/// # Errors
///
/// What stopped it; nothing has changed.
///
/// # Safety
///
/// Each poke describes a site whose bytes lie in `text`; the caller owns the patcher, and `commit`
/// neither allocates nor takes a lock.
pub(crate) unsafe fn run(
    stopper: &mut Stopper,
    signal: i32,
    bound: Duration,
    text: &OpenText<'_>,
    pokes: &[Poke],
    commit: impl FnOnce(),
) -> Result<(), Stop> {
    // A handler that ran on this thread while others are stopped could wait for one of them for ever.
    let _held_back = mask::hold_back();
    // 1.
    let stopped = stopper.stop(signal, bound).map_err(Stop::NotStopped)?;
    // 2. and 3., as for a process with one thread, which this is now.
    // SAFETY: nobody else runs; the rest by the caller.
    let stored = unsafe { single::run(text, pokes, commit) };
    // 4.
    drop(stopped);
    stored.map_err(Stop::Store)
}
