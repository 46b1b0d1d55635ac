//! How a batch is made safe against threads that are executing its sites: one protocol a file, and
//! what they share.

#![allow(unsafe_code)]

pub(crate) mod int3;
pub(crate) mod quadword;
pub(crate) mod single;
pub(crate) mod stop_world;

use std::fmt;

use crate::isa::imp;
use crate::os::Failure;
use crate::os::text::OpenText;
use crate::poke::Poke;

/// How a batch is made safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// A trap stands on every site while it changes. One instant for all threads.
    Int3,
    /// One store of an aligned word a site.
    Quadword,
    /// Every other thread waits in a signal handler. One instant for all threads.
    StopWorld,
    /// The process has one thread, which is the one that changes: no synchronisation.
    Single,
}

impl Protocol {
    /// Its name, as in `IMMEDIATE_PROTOCOL`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Int3 => "int3",
            Protocol::Quadword => "quadword",
            Protocol::StopWorld => "stop-world",
            Protocol::Single => "single",
        }
    }

    /// Those that a program with several threads can choose, the best first.
    pub const CHOICES: &[Protocol] = &[Protocol::Int3, Protocol::Quadword, Protocol::StopWorld];

    /// Whether a batch is one instant for all threads, all sites and all variables.
    #[must_use]
    pub fn is_one_instant(self) -> bool {
        !matches!(self, Protocol::Quadword)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// How the steps ended.
pub(crate) enum End {
    /// Every site is final.
    Complete,
    /// The change has happened; the sites hold traps and read new through the handler.
    TrapsStayNew,
    /// Nothing has changed, and no trap stays.
    Unchanged(Cause),
    /// Nothing has changed; the sites hold traps and read old through the handler.
    TrapsStayOld(Cause),
}

/// What stopped a batch on the way.
pub(crate) enum Cause {
    /// The barrier between processors.
    Barrier(Failure),
    /// A store into text.
    Store(Failure),
}

/// How many bytes of a site a trap covers: one, or a word that is the whole site.
const TRAP_LENGTH: usize = imp::TRAP.len();

/// Puts the trap over the first bytes of a site.
///
/// # Safety
///
/// The site lies in the open text.
#[inline(always)]
unsafe fn store_trap(text: &OpenText<'_>, poke: &Poke) -> Result<(), Failure> {
    // SAFETY: by the caller.
    unsafe {
        match *imp::TRAP {
            [a, b, c, d] => text.store_four(poke.address, u32::from_le_bytes([a, b, c, d])),
            [byte] => text.store_byte(poke.address, byte),
            _ => Ok(()),
        }
    }
}

/// The first new bytes, where the trap was.
///
/// # Safety
///
/// The site lies in the open text, and no processor runs it with an old remainder.
#[inline(always)]
unsafe fn store_first(text: &OpenText<'_>, poke: &Poke) -> Result<(), Failure> {
    // SAFETY: by the caller.
    unsafe {
        if const { TRAP_LENGTH == 4 } {
            text.store_four(poke.address, poke.new as u32)
        } else {
            text.store_byte(poke.address, poke.new_first_byte())
        }
    }
}

/// The new bytes behind those that a trap covers.
///
/// # Safety
///
/// The site lies in the open text, and no processor runs the bytes behind its first.
#[inline(always)]
unsafe fn store_remainder(text: &OpenText<'_>, poke: &Poke) -> Result<(), Failure> {
    if const { TRAP_LENGTH == 4 } {
        return Ok(());
    }
    let (address, bits, width) = if poke.field == 0 {
        (poke.address + 1, poke.new >> 8, poke.width - 1)
    } else {
        (poke.field_address(), poke.new, poke.width)
    };
    // SAFETY: by the caller; an eight-byte field is aligned by the site's template.
    unsafe {
        if width == 8 {
            text.store_aligned(address, bits)
        } else {
            text.store_four(address, bits as u32)
        }
    }
}

/// The whole new instruction, its first byte last.
///
/// # Safety
///
/// As for [`store_remainder`].
#[inline(always)]
unsafe fn store_whole(text: &OpenText<'_>, poke: &Poke) -> Result<(), Failure> {
    // SAFETY: by the caller.
    unsafe {
        store_remainder(text, poke)?;
        store_first(text, poke)
    }
}
