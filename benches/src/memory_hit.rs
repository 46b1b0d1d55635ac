//! The memory-hit experiment of 2007: a branch on a value that is in the instruction, in the
//! first-level cache, or in memory.
//!
//! In memory: in a table larger than the last level of cache, at a place that a pseudo-random number
//! chooses. Every contender computes that place; `base` then branches on nothing.
//!
//! With a fence in each round of the loop the processor waits for the value, as it does where the
//! value decides what it does next and was predicted wrongly, or where nothing else is left to do.
//! Without (overlapped) it predicts the branch and goes on, so that the misses of many
//! rounds overlap.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use immediate::{Immediate, immediate, immediate_if, immediate_read};

use crate::processors::{Caches, LINE};
use crate::{cycles, mixed};

#[immediate]
static SWITCH: Immediate<bool> = Immediate::new(false);
static IN_CACHE: AtomicBool = AtomicBool::new(false);

#[cold]
#[inline(never)]
fn note() {
    black_box(());
}

macro_rules! loops {
    ($($name:ident: |$table:ident, $place:ident| $check:expr;)*) => {
        $(
            #[inline(never)]
            fn $name<const FENCE: bool>($table: &[u8], rounds: u64) {
                let mask = $table.len() - 1;
                let mut number = black_box(1);
                for _ in 0..rounds {
                    number = mixed::next(number);
                    let $place = black_box((number >> 20) as usize & mask & !(LINE - 1));
                    if $check {
                        note();
                    }
                    if FENCE {
                        cycles::fence();
                    }
                }
            }
        )*
    };
}

loops! {
    base: |table, _place| false;
    immediate: |table, _place| immediate_if!(SWITCH);
    immediate_value: |table, _place| immediate_read!(SWITCH);
    l1: |table, _place| IN_CACHE.load(Ordering::Relaxed);
    memory: |table, place| table[place] == 0;
}

/// A loop, fenced and free: over a table, so many rounds.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    /// Its name in keys.
    pub key: &'static str,
    /// With a fence in each round.
    pub fenced: fn(&[u8], u64),
    /// Without.
    pub free: fn(&[u8], u64),
}

macro_rules! contenders {
    ($($name:ident),*) => {
        [$(Contender { key: stringify!($name), fenced: $name::<true>, free: $name::<false> }),*]
    };
}

/// All of them, the base first.
pub const CONTENDERS: [Contender; 5] = contenders!(base, immediate, immediate_value, l1, memory);

/// A table that is larger than the last level of cache.
#[must_use]
pub fn table() -> Vec<u8> {
    // Somebody could switch it: a flag that nobody writes is a constant to the compiler.
    black_box(&IN_CACHE).store(false, Ordering::Relaxed);
    let last = Caches::of_this_machine().last;
    vec![1; (2 * last).next_power_of_two().clamp(64 << 20, 512 << 20)]
}
