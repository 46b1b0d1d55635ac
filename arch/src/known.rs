//! The sites that a trap may come from: executable ranges and the sites in them, readable from a
//! signal handler.
//!
//! A trap can arrive after its batch has ended, for the kernel delivers a signal when it likes and
//! `membarrier` does not wait for handlers. Such a thread stands behind a byte that is no longer a
//! trap; it may be sent back only when the place is a site of ours.
//!
//! # Invariants
//!
//! * `K1` A slot is written only by the owner of the [`Patcher`](crate::Patcher), one at a time;
//!   `sequence` is odd while `start` and `end` change.
//! * `K2` `sites` points to `count` offsets, sorted, until the slot is cleared. Whoever has a
//!   program counter inside `start..end` is executing that text, so the text is loaded and its
//!   slot is not cleared meanwhile. A handler follows `sites` only after it has found its own
//!   program counter in the range.
//! * `K3` Chunks are never freed.

#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, fence};

/// An executable range of a loaded object, rounded to pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownText {
    /// First address.
    pub start: usize,
    /// Address behind the last.
    pub end: usize,
}

/// Names a range that was added to a [`Patcher`](crate::Patcher).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextId(usize);

impl TextId {
    /// The place of the range in the patcher's list.
    pub(crate) fn index(self) -> usize {
        self.0
    }
}

const SLOTS: usize = 64;

struct Slot {
    sequence: AtomicUsize,
    start: AtomicUsize,
    end: AtomicUsize,
    sites: AtomicPtr<u32>,
    count: AtomicUsize,
}

struct Chunk {
    slots: [Slot; SLOTS],
    next: AtomicPtr<Chunk>,
}

impl Chunk {
    const fn new() -> Self {
        #[allow(clippy::declare_interior_mutable_const)] // one new slot each time, as meant
        const EMPTY: Slot = Slot {
            sequence: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            sites: AtomicPtr::new(ptr::null_mut()),
            count: AtomicUsize::new(0),
        };
        #[allow(clippy::declare_interior_mutable_const)] // one new slot each time, as meant
        const ARRAY: [Slot; SLOTS] = [EMPTY; SLOTS];
        Chunk { slots: ARRAY, next: AtomicPtr::new(ptr::null_mut()) }
    }
}

static FIRST: Chunk = Chunk::new();

fn next(chunk: &Chunk) -> Option<&'static Chunk> {
    // SAFETY: K3; `next` is null or came from `Box::leak`.
    unsafe { chunk.next.load(Ordering::Acquire).as_ref() }
}

fn slot(id: TextId) -> &'static Slot {
    let mut chunk = &FIRST;
    for _ in 0..id.0 / SLOTS {
        chunk = next(chunk).expect("a text id names a slot that exists");
    }
    &chunk.slots[id.0 % SLOTS]
}

/// Takes a free slot for `text`. The caller owns the patcher (K1).
pub(crate) fn add(text: KnownText) -> TextId {
    let mut base = 0;
    let mut chunk = &FIRST;
    loop {
        if let Some(free) = chunk.slots.iter().position(|s| s.end.load(Ordering::Relaxed) == 0) {
            let slot = &chunk.slots[free];
            write_range(slot, text.start, text.end);
            return TextId(base + free);
        }
        base += SLOTS;
        chunk = match next(chunk) {
            Some(more) => more,
            None => {
                let more: &'static Chunk = Box::leak(Box::new(Chunk::new()));
                chunk.next.store(ptr::from_ref(more).cast_mut(), Ordering::Release);
                more
            }
        };
    }
}

fn write_range(slot: &Slot, start: usize, end: usize) {
    let sequence = slot.sequence.load(Ordering::Relaxed);
    slot.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
    fence(Ordering::Release);
    slot.start.store(start, Ordering::Relaxed);
    slot.end.store(end, Ordering::Relaxed);
    slot.sequence.store(sequence.wrapping_add(2), Ordering::Release);
}

/// Gives a range the sorted offsets of its sites from its start. The caller owns the patcher.
pub(crate) fn set_sites(id: TextId, sites: Box<[u32]>) {
    debug_assert!(sites.is_sorted(), "the handler searches the sites by halving");
    let slot = slot(id);
    debug_assert!(slot.sites.load(Ordering::Relaxed).is_null(), "sites are given once");
    let count = sites.len();
    slot.sites.store(Box::into_raw(sites).cast(), Ordering::Relaxed);
    slot.count.store(count, Ordering::Release);
}

/// Clears a range whose text is about to be unmapped. The caller owns the patcher.
pub(crate) fn remove(id: TextId) {
    let slot = slot(id);
    let count = slot.count.swap(0, Ordering::Relaxed);
    let sites = slot.sites.swap(ptr::null_mut(), Ordering::Relaxed);
    write_range(slot, 0, 0);
    if !sites.is_null() {
        // SAFETY: K2; the pointer and the length are those of the box that `set_sites` took, and
        // no thread has its program counter in this text any more.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(sites, count)) });
    }
}

/// Whether `address` is the first byte of a known site.
///
/// Async-signal-safe: no lock, no allocation, no store.
pub(crate) fn is_site(address: usize) -> bool {
    let mut chunk = Some(&FIRST);
    while let Some(current) = chunk {
        for slot in &current.slots {
            if let Some(start) = contains(slot, address) {
                let count = slot.count.load(Ordering::Acquire);
                let sites = slot.sites.load(Ordering::Relaxed);
                if count == 0 || sites.is_null() {
                    return false;
                }
                // SAFETY: K2; the caller's program counter lies in the range.
                let sites = unsafe { std::slice::from_raw_parts(sites, count) };
                return u32::try_from(address.wrapping_sub(start))
                    .is_ok_and(|offset| sites.binary_search(&offset).is_ok());
            }
        }
        chunk = next(current);
    }
    false
}

/// The start of the slot's range if `address` lies in it.
fn contains(slot: &Slot, address: usize) -> Option<usize> {
    loop {
        let before = slot.sequence.load(Ordering::Acquire);
        let start = slot.start.load(Ordering::Relaxed);
        let end = slot.end.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        if before % 2 == 1 {
            // Being added or removed: no thread executes a text of that kind, so not the caller's.
            return None;
        }
        if slot.sequence.load(Ordering::Relaxed) == before {
            return (start <= address && address < end).then_some(start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// Stands for owning the patcher, which every writer of the index has to.
    fn own_the_patcher() -> MutexGuard<'static, ()> {
        static PATCHER: Mutex<()> = Mutex::new(());
        PATCHER.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn finds_its_sites_and_forgets_them() {
        let _owned = own_the_patcher();
        let text = KnownText { start: 0x7000_0000, end: 0x7000_2000 };
        let id = add(text);
        assert!(!is_site(0x7000_0010), "no sites yet");
        set_sites(id, vec![0x10, 0x20, 0x1ff0].into_boxed_slice());
        assert!(is_site(0x7000_0010) && is_site(0x7000_1ff0));
        assert!(!is_site(0x7000_0011) && !is_site(0x7000_2000) && !is_site(0x6fff_fff0));
        remove(id);
        assert!(!is_site(0x7000_0010));
    }

    #[test]
    fn grows_past_one_chunk() {
        let _owned = own_the_patcher();
        let ids: Vec<_> = (0..200)
            .map(|n| {
                let start = 0x6000_0000 + n * 0x1000;
                let id = add(KnownText { start, end: start + 0x1000 });
                set_sites(id, vec![8].into_boxed_slice());
                id
            })
            .collect();
        assert!(is_site(0x6000_0000 + 199 * 0x1000 + 8));
        ids.into_iter().for_each(remove);
        assert!(!is_site(0x6000_0000 + 199 * 0x1000 + 8));
    }
}
