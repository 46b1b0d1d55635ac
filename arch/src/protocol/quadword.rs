//! The protocol `quadword`: one store of an aligned eight-byte word a site.
//!
//! # Steps
//!
//! 1. Store the word that holds the site's field, with the field new and its other bytes as they
//!    are.
//! 2. Synchronise: no processor runs an old instruction any more.
//! 3. The backing values.
//!
//! No trap and no signal. The words change one after another, so the batch is not one instant, and
//! a processor may run an old instruction until step 2.
//!
//! # Where it is allowed
//!
//! AMD64 Architecture Programmer's Manual volume 2, section 7.6.1, allows an asynchronous store into
//! one naturally aligned quadword of code that another processor runs; Hygon's processors are of
//! that design. Intel's manual (volume 3A, section 10.1.3) asks for a serialising instruction on
//! the other processor first, so elsewhere the protocol is used only when it is asked for.
//!
//! # When the barrier fails
//!
//! It was tried when the protocol was chosen. Should it fail in step 2 all the same, the words are
//! stored back and the batch fails.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Cause, store_whole};
use crate::os::text::OpenText;
use crate::os::{Failure, barrier};
use crate::poke::Poke;
use crate::published;

/// Carries out the steps. `pokes` is sorted by address.
///
/// # Errors
///
/// The barrier's failure; the sites hold the old bytes then.
///
/// # Safety
///
/// Each poke describes a site whose bytes lie in `text`; the caller owns the patcher.
pub(crate) unsafe fn run(
    text: &OpenText<'_>,
    pokes: &[Poke],
    commit: impl FnOnce(),
) -> Result<(), Cause> {
    // 1. The stores are releases: x86 keeps stores in order, so memory that was written before the
    // set is visible to whoever reads new.
    for (index, poke) in pokes.iter().enumerate() {
        // SAFETY: by the caller.
        if let Err(failure) = unsafe { store(text, poke) } {
            // SAFETY: by the caller.
            unsafe { back(text, &pokes[..index]) };
            return Err(Cause::Store(failure));
        }
    }
    // 2.
    if let Err(failure) = barrier::synchronise() {
        // SAFETY: by the caller.
        unsafe { back(text, pokes) };
        return Err(Cause::Barrier(failure));
    }
    // 3.
    commit();
    published::publish(&[]);
    Ok(())
}

/// Stores the old words.
///
/// # Safety
///
/// The sites lie in the open text.
unsafe fn back(text: &OpenText<'_>, pokes: &[Poke]) {
    for poke in pokes {
        // SAFETY: by the caller. With `mprotect`, the only writer of this protocol, no store fails.
        let _ = unsafe { store(text, &poke.reversed()) };
    }
}

/// Stores the word that holds the field of `poke`.
///
/// # Safety
///
/// The site lies in the open text.
unsafe fn store(text: &OpenText<'_>, poke: &Poke) -> Result<(), Failure> {
    if poke.width == 8 {
        // SAFETY: by the caller; an aligned word by the site's template. A trap that an earlier
        // batch left on the opcode goes with it.
        return unsafe { store_whole(text, poke) };
    }
    let base = poke.address & !7;
    debug_assert!(poke.end() <= base + 8, "the template keeps a site inside one aligned word");
    // SAFETY: by the caller; text is readable, and only the owner of the patcher writes it.
    let word = unsafe { AtomicU64::from_ptr(base as *mut u64) }.load(Ordering::Relaxed);
    let first = u64::from(poke.new_first_byte()) << ((poke.address - base) * 8);
    let first_mask = 0xff_u64 << ((poke.address - base) * 8);
    let shift = (poke.field_address() - base) * 8;
    let mask = (u64::MAX >> (64 - u32::from(poke.width) * 8)) << shift;
    let word = (word & !first_mask & !mask) | first | (poke.new << shift);
    // SAFETY: by the caller; `base` is a multiple of 8.
    unsafe { text.store_aligned(base, word) }
}

/// Whether this processor's manual allows the protocol, else the processor's vendor.
///
/// # Errors
///
/// The vendor that does not allow it.
pub(crate) fn is_in_manual() -> Result<(), String> {
    let vendor = vendor();
    if matches!(vendor.as_str(), "AuthenticAMD" | "HygonGenuine") { Ok(()) } else { Err(vendor) }
}

fn vendor() -> String {
    cfg_select! {
        any(target_arch = "x86_64", target_arch = "x86") => {
            #[cfg(target_arch = "x86")]
            use std::arch::x86::__cpuid;
            #[cfg(target_arch = "x86_64")]
            use std::arch::x86_64::__cpuid;

            let leaf = __cpuid(0);
            [leaf.ebx, leaf.edx, leaf.ecx]
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .map(char::from)
                .collect()
        }
        _ => { String::from(std::env::consts::ARCH) }
    }
}
