//! The trap handler allocates nothing and uses the alternate stack: a thread may trap inside the
//! allocator, or with little stack left. What would go wrong: a deadlock in an allocator that locks,
//! when a site inside it traps.
//!
//! CASES 14 (seen in wasmtime, issue 12787); a thread of a library that was loaded later is looked
//! at with the modules.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use immediate::{Batch, Config, Immediate, Protocol, immediate, immediate_if, immediate_read};
use immediate_tests::alternate_stack::AlternateStack;
use immediate_tests::counter::AtomicU64;
use immediate_tests::scatter::{gather64, scatter64};

#[immediate]
static WIDE: Immediate<u64> = Immediate::new(0);
#[immediate]
static ODD: Immediate<bool> = Immediate::new(false);

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

fn count() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
}

// SAFETY: as the system's; the count is the thread's own and needs no allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count();
        // SAFETY: by the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Each reader traps so often, at least; its alternate stack tells.
const TRAPS: u64 = 50;
const READERS: usize = 3;

#[test]
fn threads_that_only_read_allocate_nothing() {
    let config = Config { protocol: Some(Protocol::Int3), ..Config::default() };
    immediate::configure(config).expect("nothing has been set");
    let has_sites = immediate_tests::has_sites();
    let stop = AtomicBool::new(false);
    let trapped: [AtomicU64; READERS] = [const { AtomicU64::new(0) }; READERS];
    let (allocated, faults) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut sets = 0;
    std::thread::scope(|scope| {
        for trapped in &trapped {
            let (stop, allocated, faults) = (&stop, &allocated, &faults);
            scope.spawn(move || {
                let mut stack = AlternateStack::install();
                let before = ALLOCATIONS.get();
                let mut last = 0;
                while !stop.load(SeqCst) {
                    for _ in 0..2_000 {
                        match gather64(immediate_read!(WIDE)) {
                            Some(generation) if generation >= last => last = generation,
                            _ => _ = faults.fetch_add(1, SeqCst),
                        }
                        std::hint::black_box(immediate_if!(ODD));
                    }
                    if stack.was_used() {
                        trapped.fetch_add(1, SeqCst);
                        stack.wipe();
                    }
                }
                allocated.fetch_add(ALLOCATIONS.get() - before, SeqCst);
            });
        }
        let deadline = Instant::now() + Duration::from_secs(30);
        let enough = || trapped.iter().all(|traps| traps.load(SeqCst) >= TRAPS);
        while (!has_sites || !enough()) && sets < 200_000 && Instant::now() < deadline {
            sets += 1;
            let batch = Batch::new().set(&WIDE, scatter64(sets)).set(&ODD, sets % 2 == 1);
            if let Err(error) = batch.apply() {
                stop.store(true, SeqCst);
                panic!("{error}");
            }
        }
        stop.store(true, SeqCst);
    });
    let trapped = trapped.map(AtomicU64::into_inner);
    println!("{sets} sets; readers found their alternate stacks used {trapped:?} times");
    assert_eq!((allocated.into_inner(), faults.into_inner()), (0, 0));
    if has_sites {
        assert!(trapped.iter().all(|traps| *traps > 0), "every reader trapped");
    }
}
