//! The protocol `int3`: a trap stands on every site of the batch while the batch changes.
//!
//! # Steps
//!
//! 1. Publish the batch to the trap handler, with the old and the new field of each site, in phase
//!    *old*.
//! 2. The first byte of every site becomes the trap.
//! 3. Synchronise: from here on no processor runs any of these sites directly. Whoever comes to one
//!    traps and is given the old value. (This barrier is also what makes memory that was written
//!    before the set visible to whoever will read the new value.)
//! 4. The phase becomes *new*: the one instant at which all threads, all sites and all variables
//!    change. The backing values follow.
//! 5. The remaining bytes of every site.
//! 6. Synchronise: no processor holds an old remainder.
//! 7. The first byte of every site.
//! 8. Synchronise: no processor traps any more.
//!
//! Stored code is brought to the instruction caches before each synchronisation, where that takes
//! instructions of its own. Where a trap is a word, which is the whole site, steps 5 and 6 have nothing
//! to do but the barrier.
//!
//! Were the handler to give the new value before step 3, a thread could see new at one site and
//! then old at a site that another processor has not yet seen change.
//!
//! # When a barrier fails
//!
//! * In step 3: nobody has seen anything new. The traps stay, in phase *old*, because bytes are
//!   never taken away without synchronisation; the sites read right through the handler. The batch
//!   fails, and nothing has changed.
//! * In step 6: the change has happened. The traps stay, in phase *new*. The batch succeeds.
//! * In step 8: the change has happened and the bytes are final. A trap that comes late finds a
//!   known site without a trap and is sent back. The batch succeeds.
//! * A store that fails (only the writer `procmem` can fail here) is as a barrier that fails: before
//!   step 4 the traps that were written stay in phase *old*, after it in phase *new*.
//!
//! Traps that stay are repaired at once by another protocol, or by the next batch.
//!
//! Source of the scheme: `text_poke_bp_batch` of the Linux kernel, whose handler gives the new value
//! at once; the phases are ours.

#![allow(unsafe_code)]

use super::{Cause, End, store_first, store_remainder, store_trap};
use crate::os::text::OpenText;
use crate::os::{barrier, flush::flush};
use crate::poke::Poke;
use crate::published;

/// Carries out the steps. `pokes` is sorted by address.
///
/// # Safety
///
/// The trap handler is installed and every thread can take a trap; each poke describes a site
/// whose bytes lie in `text`; the caller owns the patcher.
pub(crate) unsafe fn run(text: &OpenText<'_>, pokes: &[Poke], commit: impl FnOnce()) -> End {
    // 1.
    published::publish(pokes);
    // 2.
    for poke in pokes {
        // SAFETY: the site lies in the open text, by the caller.
        if let Err(failure) = unsafe { store_trap(text, poke) } {
            return End::TrapsStayOld(Cause::Store(failure));
        }
    }
    flush(pokes);
    // 3.
    if let Err(failure) = barrier::synchronise() {
        return End::TrapsStayOld(Cause::Barrier(failure));
    }
    // 4.
    published::enter_phase_new();
    commit();
    // 5.
    for poke in pokes {
        // SAFETY: as in step 2; no processor runs these bytes.
        if unsafe { store_remainder(text, poke) }.is_err() {
            return End::TrapsStayNew;
        }
    }
    flush(pokes);
    // 6.
    if barrier::synchronise().is_err() {
        return End::TrapsStayNew;
    }
    // 7.
    for poke in pokes {
        // SAFETY: as in step 2.
        if unsafe { store_first(text, poke) }.is_err() {
            return End::TrapsStayNew;
        }
    }
    flush(pokes);
    // 8.
    let _ = barrier::synchronise();
    published::publish(&[]);
    End::Complete
}
