//! The batch as the trap handler sees it.
//!
//! Two tables take turns. The updater fills the one that is not current, then makes it current
//! with one store; a handler reads the current one and, before it trusts what it read, looks
//! whether the table is still the same. No handler ever waits: at any instant the current table is
//! complete.
//!
//! # Invariants
//!
//! * `P1` Only the owner of the [`Patcher`](crate::Patcher) writes, one at a time.
//! * `P2` A table is rewritten only while it is not current, and its `generation` is raised before
//!   and after. A reader whose `generation` has not moved between its first and its last load has
//!   read one state.
//! * `P3` Buffers of entries are never freed, so a reader that is overtaken reads old or mixed
//!   numbers, which P2 discards, but never unmapped memory. A table grows by doubling: what is kept
//!   is at most twice the largest batch.
//! * `P4` A trap byte of ours stands only at sites of the current table: the table is published
//!   before the first trap is written and withdrawn after the last has been taken away.

#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence};

use crate::poke::Poke;

/// Which value a trapped thread is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The value before the batch.
    Old = 0,
    /// The value after it.
    New = 1,
}

struct Entry {
    address: AtomicUsize,
    old: [AtomicU32; 2],
    new: [AtomicU32; 2],
    shape: AtomicU32,
}

impl Entry {
    fn store(&self, poke: &Poke) {
        let halves = |word: u64| [word as u32, (word >> 32) as u32];
        self.address.store(poke.address, Ordering::Relaxed);
        for (place, half) in self.old.iter().zip(halves(poke.old)) {
            place.store(half, Ordering::Relaxed);
        }
        for (place, half) in self.new.iter().zip(halves(poke.new)) {
            place.store(half, Ordering::Relaxed);
        }
        let [first, second] = poke.head;
        let shape = u32::from_le_bytes([poke.field, poke.width, first, second]);
        self.shape.store(shape, Ordering::Relaxed);
    }

    fn load(&self) -> Poke {
        let whole = |halves: &[AtomicU32; 2]| {
            u64::from(halves[0].load(Ordering::Relaxed))
                | u64::from(halves[1].load(Ordering::Relaxed)) << 32
        };
        let [field, width, first, second] = self.shape.load(Ordering::Relaxed).to_le_bytes();
        Poke {
            address: self.address.load(Ordering::Relaxed),
            old: whole(&self.old),
            new: whole(&self.new),
            field,
            width,
            head: [first, second],
        }
    }
}

struct Table {
    generation: AtomicUsize,
    phase: AtomicU8,
    entries: AtomicPtr<Entry>,
    length: AtomicUsize,
    capacity: AtomicUsize,
}

impl Table {
    const fn new() -> Self {
        Table {
            generation: AtomicUsize::new(0),
            phase: AtomicU8::new(Phase::Old as u8),
            entries: AtomicPtr::new(ptr::null_mut()),
            length: AtomicUsize::new(0),
            capacity: AtomicUsize::new(0),
        }
    }

    fn entry(&self, entries: *const Entry, index: usize) -> &Entry {
        // SAFETY: P3; callers keep `index` below a capacity that `entries` had or an older, larger
        // table had: both lie in memory that is never freed.
        unsafe { &*entries.add(index) }
    }
}

static TABLES: [Table; 2] = [Table::new(), Table::new()];
static CURRENT: AtomicUsize = AtomicUsize::new(0);

/// Makes `pokes`, sorted by address, the current table in phase *old*. The caller owns the
/// patcher.
pub(crate) fn publish(pokes: &[Poke]) {
    debug_assert!(pokes.is_sorted_by_key(|poke| poke.address), "the handler searches by halving");
    let spare = 1 - CURRENT.load(Ordering::Relaxed);
    let table = &TABLES[spare];
    let generation = table.generation.load(Ordering::Relaxed);
    table.generation.store(generation.wrapping_add(1), Ordering::Relaxed);
    fence(Ordering::Release);
    if pokes.len() > table.capacity.load(Ordering::Relaxed) {
        let capacity = pokes.len().next_power_of_two();
        let fresh: Box<[Entry]> = (0..capacity)
            .map(|_| Entry {
                address: AtomicUsize::new(0),
                old: [AtomicU32::new(0), AtomicU32::new(0)],
                new: [AtomicU32::new(0), AtomicU32::new(0)],
                shape: AtomicU32::new(0),
            })
            .collect();
        // Readers may still look at the length with the old buffer in hand: the length shrinks to
        // what both hold before the buffer changes (P3).
        table.length.store(0, Ordering::SeqCst);
        table.entries.store(Box::leak(fresh).as_mut_ptr(), Ordering::Release);
        table.capacity.store(capacity, Ordering::Relaxed);
    }
    let entries = table.entries.load(Ordering::Relaxed);
    for (index, poke) in pokes.iter().enumerate() {
        table.entry(entries, index).store(poke);
    }
    table.length.store(pokes.len(), Ordering::Release);
    table.phase.store(Phase::Old as u8, Ordering::Relaxed);
    table.generation.store(generation.wrapping_add(2), Ordering::Release);
    CURRENT.store(spare, Ordering::SeqCst);
}

/// The one instant at which a batch becomes visible to threads that trap.
pub(crate) fn enter_phase_new() {
    TABLES[CURRENT.load(Ordering::Relaxed)].phase.store(Phase::New as u8, Ordering::SeqCst);
}

/// A place in the history of publications, to tell whether it has moved on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    current: usize,
    generation: usize,
}

/// What the current table says of `address`, and when it said so.
///
/// Async-signal-safe: no lock, no allocation, no store.
pub(crate) fn find(address: usize) -> (Moment, Option<(Poke, Phase)>) {
    loop {
        let current = CURRENT.load(Ordering::SeqCst);
        let table = &TABLES[current & 1];
        let generation = table.generation.load(Ordering::Acquire);
        let found = search(table, address);
        let phase = if table.phase.load(Ordering::SeqCst) == Phase::New as u8 {
            Phase::New
        } else {
            Phase::Old
        };
        fence(Ordering::SeqCst);
        let moment = Moment { current, generation };
        if generation.is_multiple_of(2) && is_now(moment) {
            return (moment, found.map(|poke| (poke, phase)));
        }
    }
}

/// Whether nothing has been published since `moment`.
pub(crate) fn is_now(moment: Moment) -> bool {
    CURRENT.load(Ordering::SeqCst) == moment.current
        && TABLES[moment.current & 1].generation.load(Ordering::SeqCst) == moment.generation
}

fn search(table: &Table, address: usize) -> Option<Poke> {
    // The length first: a buffer that is seen afterwards is at least as long (see `publish`).
    let length = table.length.load(Ordering::Acquire);
    let entries = table.entries.load(Ordering::Acquire);
    let (mut low, mut high) = (0, length);
    while low < high {
        let middle = low + (high - low) / 2;
        let entry = table.entry(entries, middle);
        let at = entry.address.load(Ordering::Relaxed);
        if at == address {
            return Some(entry.load());
        }
        if at < address { low = middle + 1 } else { high = middle }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poke(address: usize, old: u64, new: u64) -> Poke {
        Poke { address, old, new, field: 1, width: 4, head: [0xb8, 0] }
    }

    // One test: the tables are the process's.
    #[test]
    fn a_table_is_found_and_replaced() {
        publish(&[poke(0x10, 1, 2), poke(0x20, 3, 4), poke(0x30, 5, 6)]);
        let (before, found) = find(0x20);
        assert_eq!(found, Some((poke(0x20, 3, 4), Phase::Old)));
        assert_eq!(find(0x21).1, None);
        enter_phase_new();
        assert_eq!(find(0x30).1, Some((poke(0x30, 5, 6), Phase::New)));
        assert!(is_now(before), "a phase is no new publication");
        let many: Vec<_> = (0..1000).map(|n| poke(0x1000 + n * 8, n as u64, u64::MAX)).collect();
        publish(&many);
        assert!(!is_now(before));
        assert_eq!(find(0x20).1, None);
        for expected in &many {
            assert_eq!(find(expected.address).1, Some((*expected, Phase::Old)));
        }
        publish(&[]);
        assert_eq!(find(0x1000).1, None);
    }
}
