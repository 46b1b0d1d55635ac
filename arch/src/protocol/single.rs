//! The protocol `single`: nobody else can see the code, so nothing is synchronised.
//!
//! # Steps
//!
//! 1. The bytes of every site.
//! 2. The backing values.
//!
//! Should a store fail (only the writer `procmem` can), those before it are undone. That the kernel
//! refuses a page that it has accepted an instant before, again and again, is the one case that
//! cannot be undone.
//!
//! Used when the process has one thread, and for the text of a module that no thread has run yet.
//! A processor sees its own stores into code: the way back from the system call that makes the text
//! read-only again serialises it (Intel SDM volume 3A, section 10.1.3).

#![allow(unsafe_code)]

use super::store_whole;
use crate::os::text::OpenText;
use crate::os::{Failure, flush::flush, mask};
use crate::poke::Poke;
use crate::published;

/// How often a store that undoes another is tried.
const TRIES: usize = 8;

/// Carries out the steps.
///
/// # Errors
///
/// The failure of a store; the sites are as they were.
///
/// # Safety
///
/// No other thread runs the sites; each poke describes a site whose bytes lie in `text`; the caller
/// owns the patcher.
pub(crate) unsafe fn run(
    text: &OpenText<'_>,
    pokes: &[Poke],
    commit: impl FnOnce(),
) -> Result<(), Failure> {
    // A handler that ran on this thread in the middle of a store would execute half an instruction.
    let _held_back = mask::hold_back();
    // 0. Only `procmem` can fail. What is stored here changes nothing, but a page that the kernel will
    // not let us write, or has no memory to copy, is found before the first change.
    if text.can_fail() {
        for poke in pokes {
            // SAFETY: by the caller.
            unsafe { store_whole(text, &poke.reversed()) }?;
        }
    }
    // 1.
    for (index, poke) in pokes.iter().enumerate() {
        // SAFETY: by the caller.
        if let Err(failure) = unsafe { store_whole(text, poke) } {
            for done in &pokes[..=index] {
                // SAFETY: by the caller. Bytes that could be stored a moment ago can be again.
                let mut tries = (0..TRIES).map(|_| unsafe { store_whole(text, &done.reversed()) });
                let _ = tries.find(Result::is_ok);
            }
            flush(pokes);
            return Err(failure);
        }
    }
    flush(pokes);
    // 2.
    commit();
    published::publish(&[]);
    Ok(())
}
