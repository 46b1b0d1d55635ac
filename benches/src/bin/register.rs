//! How long 100,000 sites take to register, and how much memory.
//!
//! Constructors run in the order of the numbers of their sections: one of ours before that of the
//! library, one behind. What lies between is the registration of this program. The allocator counts.
//!
//! # Invariants
//!
//! * `A1` Every request goes to the system's allocator as it comes.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

immediate_benches::others!(100_000);

/// Sites that the program has.
const SITES: u64 = 100_000;

struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);

// SAFETY: A1.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: A1.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: A1.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static BEFORE: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static AFTER: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

fn take(place: &[AtomicU64; 2]) {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes into memory that we own.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    place[0].store(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64, Ordering::Relaxed);
    place[1].store(LIVE.load(Ordering::Relaxed) as u64, Ordering::Relaxed);
}

extern "C" fn before() {
    take(&BEFORE);
}

extern "C" fn after() {
    take(&AFTER);
}

// SAFETY: constructors that take no arguments; they need nothing that is initialised later.
#[used]
#[unsafe(link_section = ".init_array.00000")]
static FIRST: extern "C" fn() = before;
// SAFETY: as above.
#[used]
#[unsafe(link_section = ".init_array.00002")]
static SECOND: extern "C" fn() = after;

fn main() {
    emit();
    let between =
        |index: usize| AFTER[index].load(Ordering::Relaxed) - BEFORE[index].load(Ordering::Relaxed);
    let (nanoseconds, bytes) = (between(0), between(1));
    let live = LIVE.load(Ordering::Relaxed);
    OTHER.set(8).expect("the variable can be set");
    OTHER.set(7).expect("the variable can be set");
    let more = LIVE.load(Ordering::Relaxed) - live;
    let each = |whole: f64| whole / SITES as f64;
    println!("{} {} {}", each(nanoseconds as f64), each(bytes as f64), each(more as f64));
    assert_eq!(OTHER.site_count() as u64, SITES, "every site is registered");
}
