//! The protocol `single`: nobody else can see the code, so nothing is synchronised.
//!
//! # Steps
//!
//! 1. The bytes of every site.
//! 2. The backing values.
//!
//! Used when the process has one thread, and for the text of a module that no thread has run yet.
//! A processor sees its own stores into code: the way back from the system call that makes the text
//! read-only again serialises it (Intel SDM volume 3A, section 10.1.3).

#![allow(unsafe_code)]

use super::int3::store_remainder;
use crate::os::Failure;
use crate::os::text::OpenText;
use crate::poke::Poke;
use crate::published;

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
    // 1.
    for (index, poke) in pokes.iter().enumerate() {
        // SAFETY: by the caller.
        if let Err(failure) = unsafe { store(text, poke) } {
            for done in &pokes[..=index] {
                // SAFETY: by the caller. Bytes that could be stored a moment ago can be again.
                let _ = unsafe { store(text, &done.reversed()) };
            }
            return Err(failure);
        }
    }
    // 2.
    commit();
    published::publish(&[]);
    Ok(())
}

/// # Safety
///
/// As for [`run`].
unsafe fn store(text: &OpenText<'_>, poke: &Poke) -> Result<(), Failure> {
    // SAFETY: by the caller.
    unsafe {
        store_remainder(text, poke)?;
        text.store_byte(poke.address, poke.new_first_byte())
    }
}
