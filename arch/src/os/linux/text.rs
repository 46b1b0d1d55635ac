//! The text writers.
//!
//! `mprotect`: the whole executable segment becomes writable for one batch and is put back as it was
//! found. The whole segment, because a page at a time splits the mapping for good. Never without
//! execute: other threads are running this text. Its cost is two calls and, where other threads run,
//! the flush of their address caches, whatever the number of sites.
//!
//! `procmem`: each store is a `pwrite` to `/proc/self/mem`, which the kernel carries out as a
//! debugger's write: no protection changes and no other thread is disturbed. Its cost grows with the
//! sites. A kernel may refuse it (`proc_mem.force_override`, Linux 6.12), a process that is not
//! dumpable cannot open the file, and an emulator may not see the write, so it is tried on a site of
//! our own, patched and executed, before it is trusted.
//!
//! # Invariants
//!
//! * `T1` A [`Segment`] covers loaded text, from its registration until its module is unloaded, and
//!   the owner of the [`Patcher`](crate::Patcher) is the only one who changes its protection.
//! * `T2` While an [`OpenText`] exists, all of its segments are readable and executable, and with
//!   `mprotect` writable; addresses given to its stores lie in one of them.

#![allow(unsafe_code)]

use std::cell::OnceCell;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::Failure;
use crate::isa::imp;
use crate::known::KnownText;
use crate::status::Reason;

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
    parts: OnceCell<Vec<Part>>,
}

impl Segment {
    /// A segment that has not been written yet.
    #[must_use]
    pub fn new(range: KnownText) -> Self {
        Segment { range, parts: OnceCell::new() }
    }

    /// Its addresses.
    #[must_use]
    pub fn range(&self) -> KnownText {
        self.range
    }

    /// The protection of each part, as it was found before the first write.
    fn parts(&self) -> &[Part] {
        self.parts.get_or_init(|| self.look())
    }

    fn look(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
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
                match parts.last_mut() {
                    Some(last)
                        if last.start + last.length == start && last.protection == protection =>
                    {
                        last.length += end - start;
                    }
                    _ => parts.push(Part { start, length: end - start, protection }),
                }
            }
        }
        if parts.iter().map(|part| part.length).sum::<usize>() != length {
            // Without /proc: as the program header says, and as every linker lays text out.
            let protection = libc::PROT_READ | libc::PROT_EXEC;
            parts = vec![Part { start: self.range.start, length, protection }];
        }
        parts
    }
}

/// Text that is writable until it is closed.
#[derive(Debug)]
pub struct OpenText<'a> {
    segments: Vec<&'a Segment>,
    /// `/proc/self/mem`, if that is the writer.
    memory: Option<File>,
}

/// Whether writes through `/proc/self/mem` have been proven.
///
/// The file is opened for each batch and belongs to its [`OpenText`]: a descriptor that is kept shows
/// the memory of the process that opened it, also after `fork`, and a program that closes what it
/// does not know may open a file of its own under the same number.
#[derive(Debug)]
pub struct Memory {
    /// The process in which a write was seen by execution.
    proven_in: u32,
}

impl Memory {
    /// Not proven yet.
    #[must_use]
    pub const fn new() -> Self {
        Memory { proven_in: 0 }
    }

    /// Opens the file, and proves it once a process.
    ///
    /// # Errors
    ///
    /// Why it cannot be used.
    pub fn prove(&mut self) -> Result<OpenMemory, Reason> {
        Failure::due("open(/proc/self/mem)").map_err(Reason::Failed)?;
        let opened = OpenOptions::new().write(true).open("/proc/self/mem");
        let file = opened.map_err(|error| {
            let errno = error.raw_os_error().unwrap_or(0);
            Reason::Failed(Failure { call: "open(/proc/self/mem)", errno })
        })?;
        let text = OpenText { segments: Vec::new(), memory: Some(file) };
        let process = std::process::id();
        if self.proven_in != process {
            imp::probe(|address, word| {
                // SAFETY: the probe's own immediate, which nobody executes but the probe.
                unsafe { text.store_four(address, word) }
            })?;
            self.proven_in = process;
        }
        Ok(OpenMemory(text))
    }
}

impl Default for Memory {
    fn default() -> Self {
        Memory::new()
    }
}

/// `/proc/self/mem`, open and proven.
#[derive(Debug)]
pub struct OpenMemory(OpenText<'static>);

impl OpenMemory {
    /// Opens `segments` for stores through it.
    #[must_use]
    pub fn open<'a>(self, segments: impl Iterator<Item = &'a Segment>) -> OpenText<'a> {
        OpenText { segments: segments.collect(), ..self.0 }
    }
}

const WRITABLE: libc::c_int = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;

fn protect(start: usize, length: usize, protection: libc::c_int) -> Result<(), Failure> {
    let name = if protection == WRITABLE { "mprotect(text, RWX)" } else { "mprotect(text, RX)" };
    Failure::due(name)?;
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
    segments: impl Iterator<Item = &'a Segment>,
) -> Result<OpenText<'a>, Failure> {
    let mut opened = OpenText { segments: Vec::new(), memory: None };
    for segment in segments {
        let KnownText { start, end } = segment.range;
        // Before the first change.
        segment.parts();
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
        if self.memory.is_some() {
            return result;
        }
        for part in self.segments.iter().flat_map(|segment| segment.parts()) {
            let again = || protect(part.start, part.length, part.protection);
            let one = again().or_else(|_| again());
            result = result.and(one);
        }
        result
    }

    /// The store by `pwrite`; `None` where the writer is `mprotect`.
    fn through_memory(&self, address: usize, bytes: &[u8]) -> Option<Result<(), Failure>> {
        let file = self.memory.as_ref()?;
        let call = "pwrite(/proc/self/mem)";
        if let Err(failure) = Failure::due(call) {
            return Some(Err(failure));
        }
        Some(match file.write_at(bytes, address as u64) {
            Ok(written) if written == bytes.len() => Ok(()),
            Ok(_) => Err(Failure { call, errno: libc::EIO }),
            Err(error) => Err(Failure { call, errno: error.raw_os_error().unwrap_or(libc::EIO) }),
        })
    }

    /// Whether a store can fail.
    #[must_use]
    pub fn can_fail(&self) -> bool {
        self.memory.is_some()
    }

    /// Stores one byte.
    ///
    /// # Safety
    ///
    /// `address` lies in the open text (T2).
    ///
    /// # Errors
    ///
    /// The failure of `pwrite`; nothing was stored.
    #[inline]
    pub unsafe fn store_byte(&self, address: usize, byte: u8) -> Result<(), Failure> {
        if let Some(done) = self.through_memory(address, &[byte]) {
            return done;
        }
        // SAFETY: T2 by the caller; a byte is always aligned.
        unsafe { AtomicU8::from_ptr(address as *mut u8) }.store(byte, Ordering::Release);
        Ok(())
    }

    /// Stores an aligned word of eight bytes; at once where the writer is `mprotect`.
    ///
    /// # Safety
    ///
    /// `address` lies in the open text (T2) and is a multiple of 8.
    ///
    /// # Errors
    ///
    /// The failure of `pwrite`.
    #[inline]
    pub unsafe fn store_aligned(&self, address: usize, word: u64) -> Result<(), Failure> {
        if let Some(done) = self.through_memory(address, &word.to_le_bytes()) {
            return done;
        }
        // SAFETY: T2 and the alignment by the caller.
        unsafe { AtomicU64::from_ptr(address as *mut u64) }.store(word, Ordering::Release);
        Ok(())
    }

    /// Stores four bytes; at once where all four lie in one aligned word of eight bytes and the
    /// writer is `mprotect`.
    ///
    /// # Safety
    ///
    /// `address` to `address + 3` lie in the open text (T2).
    ///
    /// # Errors
    ///
    /// The failure of `pwrite`.
    #[inline]
    pub unsafe fn store_four(&self, address: usize, word: u32) -> Result<(), Failure> {
        if let Some(done) = self.through_memory(address, &word.to_le_bytes()) {
            return done;
        }
        if address.is_multiple_of(4) {
            // SAFETY: T2 by the caller; the alignment was looked at.
            unsafe { AtomicU32::from_ptr(address as *mut u32) }.store(word, Ordering::Release);
        } else {
            // SAFETY: T2 by the caller. No atomic type may be unaligned; this is one move, which
            // x86 performs at once inside a cache line (Intel SDM volume 3A 9.1.1).
            unsafe { (address as *mut u32).write_unaligned(word) };
        }
        Ok(())
    }
}
