//! The buffer of one thread: written by that thread alone, read by whoever collects.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::point::MAX_POINTS;

/// How many scopes of a thread are kept until they are collected.
pub const RING: usize = 4096;

/// Words of an event.
const WORDS: usize = 3;

/// What a thread tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// From now on, `node` is `point` reached through `parent`; 0 is the bottom of the stack.
    Node { node: u32, point: u32, parent: u32 },
    /// A scope has ended.
    Scope { node: u32, point: u32, nanos: u64, own_nanos: u64 },
}

const IS_SCOPE: u64 = 1 << 31;

impl Event {
    fn words(self) -> [u64; WORDS] {
        match self {
            Event::Node { node, point, parent } => {
                [u64::from(node) << 32 | u64::from(point), parent.into(), 0]
            }
            Event::Scope { node, point, nanos, own_nanos } => {
                [u64::from(node) << 32 | IS_SCOPE | u64::from(point), nanos, own_nanos]
            }
        }
    }

    fn from_words([head, second, third]: [u64; WORDS]) -> Self {
        let (node, point) = ((head >> 32) as u32, (head & (IS_SCOPE - 1)) as u32);
        if head & IS_SCOPE == 0 {
            return Event::Node { node, point, parent: second as u32 };
        }
        Event::Scope { node, point, nanos: second, own_nanos: third }
    }
}

pub(super) struct Ring {
    events: Box<[[AtomicU64; WORDS]]>,
    /// How many events were written. Stored by the thread after the event (`Release`), so that the
    /// reader that loads it (`Acquire`) sees the event.
    written: AtomicU64,
    /// How many were read. Stored by the reader after it has read (`Release`), so that the thread
    /// that loads it (`Acquire`) writes over nothing that is still to be read.
    read: AtomicU64,
    /// Scopes that found the ring full.
    pub(super) lost: AtomicU64,
    pub(super) hits: Box<[AtomicU64]>,
    /// Whether the thread has ended.
    pub(super) is_over: AtomicBool,
}

impl Ring {
    pub(super) fn new() -> Self {
        Ring {
            events: (0..RING).map(|_| Default::default()).collect(),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            hits: (0..MAX_POINTS).map(|_| AtomicU64::new(0)).collect(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Writes an event, for the thread alone; false when the ring is full.
    pub(super) fn write(&self, event: Event) -> bool {
        let written = self.written.load(Ordering::Relaxed);
        if written - self.read.load(Ordering::Acquire) >= RING as u64 {
            add(&self.lost, matches!(event, Event::Scope { .. }).into());
            return false;
        }
        let place = &self.events[written as usize % RING];
        for (cell, word) in place.iter().zip(event.words()) {
            cell.store(word, Ordering::Relaxed);
        }
        self.written.store(written + 1, Ordering::Release);
        true
    }

    /// Takes all events, for one reader at a time.
    pub(super) fn take(&self, mut take: impl FnMut(Event)) {
        let written = self.written.load(Ordering::Acquire);
        let mut read = self.read.load(Ordering::Relaxed);
        while read < written {
            let place = &self.events[read as usize % RING];
            take(Event::from_words(std::array::from_fn(|word| {
                place[word].load(Ordering::Relaxed)
            })));
            read += 1;
            self.read.store(read, Ordering::Release);
        }
    }
}

/// Adds to a number that only this thread writes: no locked instruction.
pub(super) fn add(number: &AtomicU64, more: u64) {
    number.store(number.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_as_they_went_in() {
        let ring = Ring::new();
        let events = [
            Event::Node { node: u32::MAX, point: 511, parent: 7 },
            Event::Scope { node: 3, point: 511, nanos: u64::MAX, own_nanos: 1 },
        ];
        for event in events {
            assert!(ring.write(event));
        }
        let mut taken = Vec::new();
        ring.take(|event| taken.push(event));
        assert_eq!(taken, events);
        ring.take(|event| panic!("{event:?} a second time"));
    }

    #[test]
    fn full_ring_loses_the_newest_and_says_so() {
        let ring = Ring::new();
        let event = |node| Event::Scope { node, point: 0, nanos: 0, own_nanos: 0 };
        for node in 0..RING as u32 {
            assert!(ring.write(event(node)));
        }
        assert!(!ring.write(event(1)));
        assert_eq!(ring.lost.load(Ordering::Relaxed), 1);
        let mut count = 0;
        ring.take(|taken| {
            assert_eq!(taken, event(count));
            count += 1;
        });
        assert_eq!(count as usize, RING);
        assert!(ring.write(event(0)), "there is room again");
    }
}
