//! The text writer `mprotect`: the whole executable segment becomes writable for one batch and is
//! put back as it was found.
//!
//! The whole segment, because a page at a time splits the mapping for good. Never without execute:
//! other threads are running this text.
//!
//! # Invariants
//!
//! * `T1` A [`Segment`] covers loaded text, from its registration until its module is unloaded, and
//!   the owner of the [`Patcher`](crate::Patcher) is the only one who changes its protection.
//! * `T2` While an [`OpenText`] exists, all of its segments are readable, writable and executable;
//!   addresses given to its stores lie in one of them.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::Failure;
use crate::known::KnownText;
use crate::poke::Poke;

/// A part of a segment with one protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    start: usize,
    length: usize,
    protection: libc::c_int,
}

/// An executable segment and the protection that it was found with.
#[derive(Debug)]
pub struct Segment {
    range: KnownText,
    /// Found at the first write, since a program may remap its text before that.
    parts: Vec<Part>,
}

impl Segment {
    /// A segment that has not been written yet.
    #[must_use]
    pub fn new(range: KnownText) -> Self {
        Segment { range, parts: Vec::new() }
    }

    /// Its addresses.
    #[must_use]
    pub fn range(&self) -> KnownText {
        self.range
    }

    /// Notes the protection of each part, once.
    fn look(&mut self) {
        if !self.parts.is_empty() {
            return;
        }
        let length = self.range.end - self.range.start;
        if let Ok(regions) = region::query_range(self.range.start as *const u8, length) {
            for found in regions.flatten() {
                let start = found.as_range().start.max(self.range.start);
                let end = found.as_range().end.min(self.range.end);
                let mut protection = libc::PROT_NONE;
                for (has, bit) in [
                    (found.is_readable(), libc::PROT_READ),
                    (found.is_writable(), libc::PROT_WRITE),
                    (found.is_executable(), libc::PROT_EXEC),
                ] {
                    if has {
                        protection |= bit;
                    }
                }
                match self.parts.last_mut() {
                    Some(last)
                        if last.start + last.length == start && last.protection == protection =>
                    {
                        last.length += end - start;
                    }
                    _ => self.parts.push(Part { start, length: end - start, protection }),
                }
            }
        }
        if self.parts.iter().map(|part| part.length).sum::<usize>() != length {
            // Without /proc: as the program header says, and as every linker lays text out.
            let protection = libc::PROT_READ | libc::PROT_EXEC;
            self.parts = vec![Part { start: self.range.start, length, protection }];
        }
    }
}

/// Text that is writable until it is closed.
#[derive(Debug)]
pub struct OpenText<'a> {
    segments: Vec<&'a Segment>,
}

const WRITABLE: libc::c_int = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;

fn protect(start: usize, length: usize, protection: libc::c_int) -> Result<(), Failure> {
    let name = if protection == WRITABLE { "mprotect(text, RWX)" } else { "mprotect(text, RX)" };
    // SAFETY: T1; the range is loaded text, which stays readable and executable throughout.
    if unsafe { libc::mprotect(start as *mut libc::c_void, length, protection) } == 0 {
        Ok(())
    } else {
        Err(Failure::last(name))
    }
}

/// Makes `segments` writable.
///
/// # Errors
///
/// The failure of `mprotect`; all protections are as they were found then.
pub fn open<'a>(
    segments: impl Iterator<Item = &'a mut Segment>,
) -> Result<OpenText<'a>, Failure> {
    let mut opened = OpenText { segments: Vec::new() };
    for segment in segments {
        segment.look();
        let KnownText { start, end } = segment.range;
        let result = protect(start, end - start, WRITABLE);
        opened.segments.push(segment);
        if let Err(failure) = result {
            // The call may have changed a part of the range before it failed.
            let _ = opened.close();
            return Err(failure);
        }
    }
    Ok(opened)
}

impl OpenText<'_> {
    /// Puts back the protections as they were found.
    ///
    /// # Errors
    ///
    /// The first failure of `mprotect`; the others are put back all the same.
    pub fn close(self) -> Result<(), Failure> {
        let mut result = Ok(());
        for part in self.segments.iter().flat_map(|segment| &segment.parts) {
            let one = protect(part.start, part.length, part.protection);
            result = result.and(one);
        }
        result
    }

    /// Whether all bytes of `poke` lie in the open text (T2).
    #[must_use]
    pub fn covers(&self, poke: &Poke) -> bool {
        let end = poke.field_address() + usize::from(poke.width);
        self.segments
            .iter()
            .any(|segment| segment.range.start <= poke.address && end <= segment.range.end)
    }

    /// Stores one byte.
    ///
    /// # Safety
    ///
    /// `address` lies in the open text (T2).
    pub unsafe fn store_byte(&self, address: usize, byte: u8) {
        // SAFETY: T2 by the caller; a byte is always aligned.
        unsafe { AtomicU8::from_ptr(address as *mut u8) }.store(byte, Ordering::Release);
    }

    /// Stores an aligned word of eight bytes at once.
    ///
    /// # Safety
    ///
    /// `address` lies in the open text (T2) and is a multiple of 8.
    pub unsafe fn store_aligned(&self, address: usize, word: u64) {
        // SAFETY: T2 and the alignment by the caller.
        unsafe { AtomicU64::from_ptr(address as *mut u64) }.store(word, Ordering::Release);
    }

    /// Stores four bytes; at once where all four lie in one aligned word of eight bytes.
    ///
    /// # Safety
    ///
    /// `address` to `address + 3` lie in the open text (T2).
    pub unsafe fn store_four(&self, address: usize, word: u32) {
        if address.is_multiple_of(4) {
            // SAFETY: T2 by the caller; the alignment was looked at.
            unsafe { AtomicU32::from_ptr(address as *mut u32) }.store(word, Ordering::Release);
        } else {
            // SAFETY: T2 by the caller. No atomic type may be unaligned; this is one move, which
            // x86 performs at once inside a cache line (Intel SDM volume 3A 9.1.1).
            unsafe { (address as *mut u32).write_unaligned(word) };
        }
    }
}
