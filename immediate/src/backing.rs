//! The backing value of a variable: an ordinary atomic in memory.
//!
//! A value that fits an atomic of the target lies in the first slot. A wider one (128 bits
//! everywhere, 64 bits on some 32-bit targets) takes both slots in turn, so that a reader, even one
//! in a signal handler that interrupted the writer, always finds one of them whole: the latch of
//! Linux's `seqcount_latch_t`.
//!
//! # Invariants
//!
//! * `B1` Slots are read and written by atomic operations only, of one width for one type.
//! * `B2` Only the owner of the update lock writes.
//! * `B3` `turn` counts writes of a wide value; the slot `turn % 2` is whole, and is rewritten only
//!   after `turn` has moved on.

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering, fence};

use crate::value::{ImmediateValue, Kind, from_bits};

#[repr(C, align(16))]
struct Slot<T>(UnsafeCell<T>);

/// Holds a value of type `T`.
#[repr(C, align(16))]
pub(crate) struct Backing<T> {
    slots: [Slot<T>; 2],
    turn: AtomicUsize,
}

// SAFETY: B1, B2; what the value points to may be shared by the contract of `ImmediateValue`, and
// raw pointers are as in `AtomicPtr`.
unsafe impl<T: ImmediateValue> Sync for Backing<T> {}

/// The same memory without its type.
#[derive(Clone, Copy)]
pub(crate) struct RawBacking<'a> {
    slots: [*mut u8; 2],
    turn: &'a AtomicUsize,
    size: usize,
    is_pointer: bool,
}

impl<T: ImmediateValue> Backing<T> {
    pub(crate) const fn new(value: T) -> Self {
        Backing {
            slots: [Slot(UnsafeCell::new(value)), Slot(UnsafeCell::new(value))],
            turn: AtomicUsize::new(0),
        }
    }

    /// The value that it was made with; for constants, which nobody has written.
    pub(crate) const fn into_first(self) -> T {
        let Backing { slots: [Slot(first), _], .. } = self;
        first.into_inner()
    }

    pub(crate) fn raw(&self) -> RawBacking<'_> {
        RawBacking {
            slots: [self.slots[0].0.get().cast(), self.slots[1].0.get().cast()],
            turn: &self.turn,
            size: size_of::<T>(),
            is_pointer: matches!(T::KIND, Kind::Pointer),
        }
    }

    /// A plain load. It also orders what is read afterwards, for the memory that was written before
    /// the set.
    #[inline(always)]
    pub(crate) fn load(&self) -> T {
        // SAFETY: the bits of a value of this type, by `store` or `new`.
        unsafe { from_bits(self.raw().load()) }
    }
}

impl RawBacking<'_> {
    /// The backing of a variable whose head ends before `start`.
    ///
    /// # Safety
    ///
    /// `start` is the address of a live `Backing<T>` with `size` and `is_pointer` those of `T`.
    pub(crate) unsafe fn at<'a>(start: *mut u8, size: usize, is_pointer: bool) -> RawBacking<'a> {
        let slot = size.next_multiple_of(16);
        // SAFETY: by the caller; `repr(C)` puts the slots first and the turn behind them.
        unsafe {
            RawBacking {
                slots: [start, start.add(slot)],
                turn: &*start.add(2 * slot).cast::<AtomicUsize>(),
                size,
                is_pointer,
            }
        }
    }

    #[inline(always)]
    pub(crate) fn load(&self) -> u128 {
        let slot = self.slots[0];
        // SAFETY: B1; slots are aligned to 16 bytes, and each arm's width is the type's.
        unsafe {
            if self.is_pointer {
                let pointer = AtomicPtr::<()>::from_ptr(slot.cast()).load(Ordering::Acquire);
                return pointer.expose_provenance() as u128;
            }
            match self.size {
                1 => AtomicU8::from_ptr(slot).load(Ordering::Acquire).into(),
                2 => AtomicU16::from_ptr(slot.cast()).load(Ordering::Acquire).into(),
                4 => AtomicU32::from_ptr(slot.cast()).load(Ordering::Acquire).into(),
                #[cfg(target_has_atomic = "64")]
                8 => std::sync::atomic::AtomicU64::from_ptr(slot.cast())
                    .load(Ordering::Acquire)
                    .into(),
                _ => self.load_wide(),
            }
        }
    }

    fn load_wide(&self) -> u128 {
        loop {
            let turn = self.turn.load(Ordering::Acquire);
            let mut bits = 0;
            for index in 0..self.size / 4 {
                // SAFETY: B1; inside the slot, which is aligned.
                let word = unsafe { self.word(turn % 2, index) }.load(Ordering::Relaxed);
                bits |= u128::from(word) << shift(self.size, index);
            }
            // Pairs with the fence in `store_wide`: a word of a later write makes the later turn
            // visible.
            fence(Ordering::Acquire);
            if self.turn.load(Ordering::Relaxed) == turn {
                return bits;
            }
        }
    }

    /// # Safety
    ///
    /// The bits are those of a value of the variable's type, and the caller owns the update lock.
    pub(crate) unsafe fn store(&self, bits: u128) {
        let slot = self.slots[0];
        // SAFETY: as in `load`.
        unsafe {
            if self.is_pointer {
                let pointer = std::ptr::with_exposed_provenance_mut(bits as usize);
                return AtomicPtr::<()>::from_ptr(slot.cast()).store(pointer, Ordering::Release);
            }
            match self.size {
                1 => AtomicU8::from_ptr(slot).store(bits as u8, Ordering::Release),
                2 => AtomicU16::from_ptr(slot.cast()).store(bits as u16, Ordering::Release),
                4 => AtomicU32::from_ptr(slot.cast()).store(bits as u32, Ordering::Release),
                #[cfg(target_has_atomic = "64")]
                8 => std::sync::atomic::AtomicU64::from_ptr(slot.cast())
                    .store(bits as u64, Ordering::Release),
                _ => self.store_wide(bits),
            }
        }
    }

    fn store_wide(&self, bits: u128) {
        let next = self.turn.load(Ordering::Relaxed).wrapping_add(1);
        // Pairs with the fence in `load_wide`.
        fence(Ordering::Release);
        for index in 0..self.size / 4 {
            let word = (bits >> shift(self.size, index)) as u32;
            // SAFETY: B1; inside the slot, which is aligned.
            unsafe { self.word(next % 2, index) }.store(word, Ordering::Relaxed);
        }
        self.turn.store(next, Ordering::Release);
    }

    /// # Safety
    ///
    /// `index` is below `size / 4`.
    unsafe fn word(&self, slot: usize, index: usize) -> &AtomicU32 {
        // SAFETY: by the caller; B1.
        unsafe { AtomicU32::from_ptr(self.slots[slot].cast::<u32>().add(index)) }
    }
}

/// Which 32 bits of a number of `size` bytes its `index`-th word in memory holds.
fn shift(size: usize, index: usize) -> usize {
    let from_low = if cfg!(target_endian = "big") { size / 4 - 1 - index } else { index };
    32 * from_low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_values_are_never_torn() {
        static WIDE: Backing<u128> = Backing::new(0);
        let done = std::sync::atomic::AtomicBool::new(false);
        let rounds = if cfg!(miri) { 50 } else { 20_000_u128 };
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let (mut last, mut reads) = (0, 0_u64);
                while !done.load(Ordering::Relaxed) || reads == 0 {
                    let value = WIDE.load();
                    let half = value >> 64;
                    assert_eq!(half, value & u128::from(u64::MAX), "torn");
                    assert!(half >= last, "went back");
                    (last, reads) = (half, reads + 1);
                }
                reads
            });
            for n in 1..=rounds {
                // SAFETY: any bits are a u128, and this is the only writer.
                unsafe { WIDE.raw().store(n << 64 | n) };
            }
            done.store(true, Ordering::Relaxed);
            assert!(reader.join().expect("reader") > 0);
        });
        assert_eq!(WIDE.load(), rounds << 64 | rounds);
    }
}
