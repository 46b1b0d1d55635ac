//! The text writers.
//!
//! `mprotect`: text becomes writable for one batch and is put back as it was found. Never without
//! execute: other threads are running it. The first time, a mapping is opened whole: a part of a
//! mapping that has never been written would stay a mapping of its own for good. Once one of its pages
//! has been copied, all of the mapping has the kernel's record of that (`anon_vma`), which its parts
//! then share, so that they become one again when their protection is the same; from then on only the
//! pages that change are opened. The cost is two calls a run of pages and, where other threads run,
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
//! * `T2` While an [`OpenText`] exists, all of its spans are readable and executable, and with
//!   `mprotect` writable; every byte of the pokes that it was opened for lies in one of them, and
//!   so does the aligned word of eight bytes around it.

#![allow(unsafe_code)]

use std::cell::{Cell, OnceCell};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::{ptr, slice};
#[cfg(target_has_atomic = "64")]
use std::sync::atomic::AtomicU64;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use super::Failure;
use crate::isa::imp;
use crate::known::KnownText;
use crate::poke::Poke;
use crate::status::Reason;

/// A mapping, as far as it belongs to a segment.
#[derive(Debug)]
struct Part {
    start: usize,
    end: usize,
    /// As it was found before the first write.
    protection: libc::c_int,
    /// Whether one of its pages has been written, so that it may be opened by pages.
    is_written: Cell<bool>,
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

    /// Its mappings, which cover it, by address.
    fn parts(&self) -> &[Part] {
        self.parts.get_or_init(|| self.look())
    }

    fn look(&self) -> Vec<Part> {
        let KnownText { start, end } = self.range;
        let mut parts = Vec::new();
        let mut covered = start;
        if let Ok(regions) = region::query_range(start as *const u8, end - start) {
            for found in regions.flatten() {
                let (from, to) = (found.as_range().start.max(start), found.as_range().end.min(end));
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
                if from != covered {
                    break;
                }
                covered = to;
                parts.push(Part { start: from, end: to, protection, is_written: Cell::new(false) });
            }
        }
        if covered != end {
            // Without /proc: as the program header says, and as every linker lays text out.
            let protection = libc::PROT_READ | libc::PROT_EXEC;
            parts = vec![Part { start, end, protection, is_written: Cell::new(false) }];
        }
        parts
    }
}

/// Bytes of one mapping that a batch changes, and what lies between them.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    part: &'a Part,
    start: usize,
    end: usize,
}

/// Bytes between two sites that are opened along with them rather than left out by two calls more:
/// a call costs as much as fifty pages.
const GAP: usize = 64 << 12;

/// The spans of `pokes`, sorted by address.
///
/// # Errors
///
/// The address of a poke that does not lie in one of `segments`.
pub fn spans<'a>(segments: &'a [Option<Segment>], pokes: &[Poke]) -> Result<Vec<Span<'a>>, usize> {
    let mut spans = Vec::new();
    let mut rest = pokes;
    while let [poke, others @ ..] = rest {
        rest = others;
        let bound = poke.end();
        let home = segments.iter().flatten().find(|segment| {
            segment.range.start <= poke.address && bound <= segment.range.end
        });
        for part in home.ok_or(poke.address)?.parts() {
            let (start, mut end) = (poke.address.max(part.start), bound.min(part.end));
            if start >= end {
                continue;
            }
            // Most often all of them lie close together.
            if let Some(last) = others.last()
                && last.address - start < GAP
                && last.end() <= part.end
            {
                end = last.end();
                rest = &[];
            }
            while let [next, others @ ..] = rest
                && next.address < end + GAP
                && next.end() <= part.end
            {
                end = end.max(next.end());
                rest = others;
            }
            spans.push(Span { part, start, end });
        }
    }
    Ok(spans)
}

impl<'a> Span<'a> {
    /// All of the mapping.
    fn whole(self) -> Self {
        Span { start: self.part.start, end: self.part.end, ..self }
    }

    /// The pages of the span; all of the mapping where that has never been written.
    fn pages(self) -> Self {
        if !self.part.is_written.get() {
            return self.whole();
        }
        let (start, end) = (region::page::floor(self.start as *const u8), region::page::ceil(self.end as *const u8));
        Span { start: (start as usize).max(self.part.start), end: (end as usize).min(self.part.end), ..self }
    }

    fn protect(&self, protection: libc::c_int) -> Result<(), Failure> {
        protect(self.start, self.end - self.start, protection)
    }
}

/// Text that is writable until it is closed.
#[derive(Debug)]
pub struct OpenText<'a> {
    spans: Vec<Span<'a>>,
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
        let text = OpenText { spans: Vec::new(), memory: Some(file) };
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

/// Whether `mprotect` has been proven: that the kernel lets text become writable, and that what is
/// stored then is executed. An emulator may go on executing what it has translated before.
#[derive(Debug)]
pub struct Protection {
    is_proven: bool,
}

impl Protection {
    /// Not proven yet.
    #[must_use]
    pub const fn new() -> Self {
        Protection { is_proven: false }
    }

    /// Proves it once, on a site of our own, which lies in one of `segments` if its module has sites.
    ///
    /// # Errors
    ///
    /// Why it cannot be used.
    pub fn prove(&mut self, segments: &[Option<Segment>]) -> Result<(), Reason> {
        if self.is_proven {
            return Ok(());
        }
        imp::probe(|address, word| {
            let (old, new) = (0, u64::from(word));
            let store = [Poke { address, old, new, field: 0, width: 4, head: [0; 2] }];
            let own = [segment_around(address)];
            let found = spans(segments, &store).or_else(|_| spans(&own, &store));
            let text = open(found.map_err(|_| UNMAPPED)?)?;
            // SAFETY: the probe's own immediate, which nobody executes but the probe; opened above.
            let stored = unsafe { text.store_four(address, word) };
            stored.and(text.close(true))
        })?;
        self.is_proven = true;
        Ok(())
    }
}

impl Default for Protection {
    fn default() -> Self {
        Protection::new()
    }
}

const UNMAPPED: Failure = Failure { call: "mprotect(text, RWX)", errno: libc::EFAULT };

/// The mapping that `address` lies in, of a module without sites.
fn segment_around(address: usize) -> Option<Segment> {
    let mapping = region::query(address as *const u8).ok()?.as_range();
    Some(Segment::new(KnownText { start: mapping.start, end: mapping.end }))
}

/// Makes all of the text writable and puts it back, to see whether that can be done; writes nothing.
///
/// # Errors
///
/// The failure of `mprotect`; all protections are as they were found.
pub fn try_open(segments: &[Option<Segment>]) -> Result<(), Failure> {
    let parts = segments.iter().flatten().flat_map(Segment::parts);
    let whole = parts.map(|part| Span { part, start: part.start, end: part.end });
    close_all(&open_all(whole.collect())?.spans)
}

/// `/proc/self/mem`, open and proven.
#[derive(Debug)]
pub struct OpenMemory(OpenText<'static>);

impl OpenMemory {
    /// For a batch.
    #[must_use]
    pub fn open<'a>(self) -> OpenText<'a> {
        self.0
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

/// Makes `spans`, sorted by address, writable: their pages or, where the kernel does not let the
/// mapping be divided (`vm.max_map_count`), all of it.
///
/// # Errors
///
/// The failure of `mprotect`; all protections are as they were found then.
pub fn open(spans: Vec<Span<'_>>) -> Result<OpenText<'_>, Failure> {
    let whole = merged(spans.iter().map(|span| span.whole()));
    open_all(merged(spans.into_iter().map(Span::pages))).or_else(|_| open_all(whole))
}

/// Spans of one mapping that meet or overlap, as one.
fn merged<'a>(spans: impl Iterator<Item = Span<'a>>) -> Vec<Span<'a>> {
    let mut merged: Vec<Span<'a>> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if ptr::eq(last.part, span.part) && span.start <= last.end => {
                last.end = last.end.max(span.end);
            }
            _ => merged.push(span),
        }
    }
    merged
}

fn open_all(spans: Vec<Span<'_>>) -> Result<OpenText<'_>, Failure> {
    for (index, span) in spans.iter().enumerate() {
        if let Err(failure) = span.protect(WRITABLE) {
            // The call may have changed a part of the range before it failed.
            let _ = close_all(&spans[..=index]);
            return Err(failure);
        }
    }
    Ok(OpenText { spans, memory: None })
}

fn close_all(spans: &[Span<'_>]) -> Result<(), Failure> {
    let mut result = Ok(());
    for span in spans {
        let again = || span.protect(span.part.protection);
        result = result.and(again().or_else(|_| again()));
    }
    result
}

impl OpenText<'_> {
    /// Puts back the protections as they were found.
    ///
    /// # Errors
    ///
    /// The first failure of `mprotect`; the others are put back all the same.
    ///
    /// `has_stored` says whether something was stored in each of its spans.
    pub fn close(self, has_stored: bool) -> Result<(), Failure> {
        let mut result = Ok(());
        for span in &self.spans {
            let closed = close_all(slice::from_ref(span));
            // What could not be closed is opened and closed whole the next time.
            span.part.is_written.set(closed.is_ok() && (has_stored || span.part.is_written.get()));
            result = result.and(closed);
        }
        result
    }

    /// The store of the lowest `width` bytes of `bits` by `pwrite`.
    #[cold]
    fn through(file: &File, address: usize, bits: u64, width: usize) -> Result<(), Failure> {
        let bytes = &bits.to_le_bytes()[..width];
        let call = "pwrite(/proc/self/mem)";
        Failure::due(call)?;
        match file.write_at(bytes, address as u64) {
            Ok(written) if written == bytes.len() => Ok(()),
            Ok(_) => Err(Failure { call, errno: libc::EIO }),
            Err(error) => Err(Failure { call, errno: error.raw_os_error().unwrap_or(libc::EIO) }),
        }
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
        if let Some(file) = &self.memory {
            return Self::through(file, address, u64::from(byte), 1);
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
        if let Some(file) = &self.memory {
            return Self::through(file, address, word, 8);
        }
        cfg_select! {
            target_has_atomic = "64" => {
                // SAFETY: T2 and the alignment by the caller.
                unsafe { AtomicU64::from_ptr(address as *mut u64) }
                    .store(word.to_le(), Ordering::Release);
            }
            _ => {
                // No site has eight bytes where no store has; two are as good as one.
                // SAFETY: T2 by the caller.
                unsafe {
                    self.store_four(address, word as u32)?;
                    self.store_four(address + 4, (word >> 32) as u32)?;
                }
            }
        }
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
        if let Some(file) = &self.memory {
            return Self::through(file, address, u64::from(word), 4);
        }
        if address.is_multiple_of(4) {
            // SAFETY: T2 by the caller; the alignment was looked at.
            unsafe { AtomicU32::from_ptr(address as *mut u32) }.store(word.to_le(), Ordering::Release);
        } else {
            // SAFETY: T2 by the caller. No atomic type may be unaligned; this is one move, which
            // x86 performs at once inside a cache line (Intel SDM volume 3A 9.1.1).
            unsafe { (address as *mut u32).write_unaligned(word.to_le()) };
        }
        Ok(())
    }
}
