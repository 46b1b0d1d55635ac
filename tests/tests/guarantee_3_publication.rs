//! Guarantee 3: memory that was written before a set is visible to whoever reads the new value and
//! reaches the memory through it, or in the arm of a branch.
//!
//! Three forms: a pointer to a table that was written a moment ago; an arm that reads plain memory;
//! an arm that reads relaxed atomics. What would go wrong: a read of the memory that the compiler
//! (or the processor) moves before the branch, or a site that changes before the memory does.

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

use immediate::{Immediate, immediate, immediate_if, immediate_read};
use immediate_tests::counter::AtomicU64;
use immediate_tests::torture::{self, Bound, Window};

struct Table {
    generation: u64,
    filled: [u64; 31],
}

static FIRST: Table = Table { generation: 0, filled: [0; 31] };

#[immediate]
static TABLE: Immediate<&'static Table> = Immediate::new(&FIRST);

/// Two tables in one: the reader looks at words far from each other.
fn reads_tables() {
    static TABLES: Window = Window::new();
    let reader = |_| {
        let mut last = 0;
        move || {
            let (table, from, to) = TABLES.read(|| immediate_read!(TABLE));
            let generation = table.generation;
            assert!((from..=to).contains(&generation), "{generation} in {from}..={to}");
            assert!(generation >= last, "{generation} after {last}");
            assert!(table.filled.iter().all(|word| *word == generation), "a half-written table");
            last = generation;
        }
    };
    torture::run("a fresh table", Bound::new(20_000, 10), 6, reader, |generation| {
        // Leaked: nobody knows when the last reader has let go of it.
        let table = Box::leak(Box::new(Table { generation, filled: [generation; 31] }));
        TABLES.set(generation, || TABLE.set(table).expect("every thread can trap"));
    });
}

struct Plain(UnsafeCell<[u64; 8]>);

// SAFETY: written before the variable that guards it is set, read only in the arm behind that.
unsafe impl Sync for Plain {}

/// One use of an arm behind which plain memory is read.
macro_rules! plain_memory {
    ($($name:ident)*) => {$(
        mod $name {
            use super::*;

            #[immediate]
            pub(super) static READY: Immediate<bool> = Immediate::new(false);
            pub(super) static MEMORY: Plain = Plain(UnsafeCell::new([0; 8]));

            pub(super) fn wait() -> [u64; 8] {
                // Nothing in this loop but the site tells the compiler that memory may change; a
                // `spin_loop` would.
                loop {
                    immediate_if!(READY => {
                        // SAFETY: READY is set after the only write.
                        return unsafe { *MEMORY.0.get() };
                    });
                }
            }

            pub(super) fn publish(value: u64) {
                // SAFETY: nobody reads before READY is set.
                unsafe { *MEMORY.0.get() = [value; 8] };
                READY.set(true).expect("every thread can trap");
            }
        }
    )*
        static PLAIN: &[(fn() -> [u64; 8], fn(u64))] =
            &[$(($name::wait as fn() -> [u64; 8], $name::publish as fn(u64))),*];
    };
}

plain_memory! {
    p00 p01 p02 p03 p04 p05 p06 p07 p08 p09 p10 p11 p12 p13 p14 p15 p16 p17 p18 p19 p20 p21 p22 p23
    p24 p25 p26 p27 p28 p29 p30 p31
}

fn reads_plain_memory() {
    let begun = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for (index, (wait, _)) in PLAIN.iter().enumerate() {
                    begun.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(wait(), [index as u64 + 1; 8], "memory {index} from before the set");
                }
            });
        }
        for (index, (_, publish)) in PLAIN.iter().enumerate() {
            // All readers stand in the loop.
            while begun.load(Ordering::SeqCst) < 3 * (index as u64 + 1) {
                std::thread::yield_now();
            }
            publish(index as u64 + 1);
        }
    });
    println!("plain memory: {} arms, 3 readers each", PLAIN.len());
}

#[immediate]
static ODD: Immediate<bool> = Immediate::new(false);
static WORDS: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

/// The arm for odd generations, then the other: each reads what was stored before its set.
fn reads_relaxed_atomics() {
    static ARMS: Window = Window::new();
    let read_words = || WORDS.each_ref().map(|word| word.load(Ordering::Relaxed));
    let went_the_straight_way = AtomicBool::new(false);
    let reader = |_| {
        || {
            let ((is_odd, words), from, to) = ARMS.read(|| {
                if immediate_if!(ODD) {
                    (true, read_words())
                } else {
                    // The straight way is ordered by the caller, as the documentation says.
                    std::sync::atomic::compiler_fence(Ordering::Acquire);
                    went_the_straight_way.store(true, Ordering::Relaxed);
                    (false, read_words())
                }
            });
            // Which generation the arm belongs to, unless several went by.
            if to - from <= 1 {
                let generation = from + u64::from(is_odd != (from % 2 == 1));
                assert!(words.iter().all(|word| *word >= generation), "{words:?} at {generation}");
            }
        }
    };
    torture::run("relaxed atomics", Bound::new(20_000, 10), 6, reader, |generation| {
        for word in &WORDS {
            word.store(generation, Ordering::Relaxed);
        }
        ARMS.set(generation, || ODD.set(generation % 2 == 1).expect("every thread can trap"));
    });
    assert!(went_the_straight_way.into_inner());
}

#[test]
fn memory_written_before_a_set_is_visible_with_it() {
    reads_plain_memory();
    reads_tables();
    reads_relaxed_atomics();
}
