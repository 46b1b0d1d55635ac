//! Sites where they hurt: in the global allocator of the program, which also sets, and in a test by
//! closure that sets another variable. What would go wrong: the library allocates while it holds
//! its lock, the allocator asks for the lock, and the thread waits for itself for ever.
//!
//! CASES 7 (seen in tracing, issues 2020 and 3269).

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use immediate::{Batch, Error, Immediate, immediate, immediate_if, immediate_read};
use immediate_tests::torture::{self, Bound};

#[immediate]
static COUNTS: Immediate<bool> = Immediate::new(true);
#[immediate]
static LIMIT: Immediate<u64> = Immediate::new(1);
#[immediate]
static SET_BY_ALLOCATOR: Immediate<u32> = Immediate::new(1);
#[immediate]
static TESTED: Immediate<u32> = Immediate::new(0);
#[immediate]
static SET_BY_TEST: Immediate<u32> = Immediate::new(5);

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static MISREAD: AtomicU64 = AtomicU64::new(0);
static WITHIN: AtomicU64 = AtomicU64::new(0);
static OTHER: AtomicU64 = AtomicU64::new(0);
/// The allocator sets as well, from now on.
static SETS: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_SETTING: Cell<bool> = const { Cell::new(false) };
}

struct Reading;

// SAFETY: as the system's; what comes before touches no memory of the caller.
unsafe impl GlobalAlloc for Reading {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if immediate_if!(COUNTS) {
            ALLOCATIONS.fetch_add(1, SeqCst);
        }
        if immediate_read!(LIMIT) == 0 || immediate_read!(SET_BY_ALLOCATOR) == 0 {
            MISREAD.fetch_add(1, SeqCst);
        }
        // One at a time: the set allocates too.
        if SETS.load(SeqCst) && !IS_SETTING.replace(true) {
            match SET_BY_ALLOCATOR.set(7) {
                Ok(()) => &OTHER,
                Err(Error::WithinUpdate) => &WITHIN,
                Err(_) => &MISREAD,
            }
            .fetch_add(1, SeqCst);
            IS_SETTING.set(false);
        }
        // SAFETY: by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if immediate_if!(!COUNTS) {
            ALLOCATIONS.fetch_add(1, SeqCst);
        }
        // SAFETY: by the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Reading = Reading;

thread_local! {
    /// What the test by closure was told when it set another variable.
    static TOLD: RefCell<Vec<Result<(), Error>>> = const { RefCell::new(Vec::new()) };
}

/// Called when the variable is set, under the library's lock.
fn test(value: u32, least: u32) -> bool {
    let told = [
        SET_BY_TEST.set(6),
        SET_BY_TEST.set_early(6),
        Batch::new().set(&SET_BY_TEST, 6).set(&LIMIT, 6).apply(),
    ];
    // Before `main` there may be nobody to tell.
    let _ = TOLD.try_with(|list| list.borrow_mut().extend(told));
    value >= least
}

#[inline(never)]
fn is_tested() -> bool {
    immediate_if!(TESTED, |value| test(value, 10))
}

fn a_test_that_sets_is_told_so() {
    TOLD.with_borrow_mut(Vec::clear);
    if immediate_tests::has_sites() {
        TESTED.set(10).expect("the test may not set, but the set goes on");
        let told = TOLD.take();
        assert!(!told.is_empty(), "the test ran");
        assert!(told.iter().all(|one| *one == Err(Error::WithinUpdate)), "{told:?}");
        assert_eq!((SET_BY_TEST.get(), immediate_read!(SET_BY_TEST)), (5, 5));
        assert!(is_tested());
        // Through the guard as well.
        let guard = immediate::lock();
        guard.set(&TESTED, 9).expect("through the guard");
        drop(guard);
        assert!(TOLD.take().iter().all(|one| *one == Err(Error::WithinUpdate)));
        assert!(!is_tested());
        assert_eq!(SET_BY_TEST.get(), 5);
    } else {
        TESTED.set(10).expect("no site");
        assert!(is_tested());
    }
}

#[test]
fn nobody_waits_for_himself() {
    a_test_that_sets_is_told_so();
    SETS.store(true, SeqCst);
    let reader = |_| || drop(std::hint::black_box(Box::new([0_u8; 40])));
    torture::run("sites in the allocator", Bound::new(5_000, 10), 3, reader, |generation| {
        Batch::new()
            .set(&COUNTS, generation % 2 == 1)
            .set(&LIMIT, generation)
            .apply()
            .expect("the allocator's set comes before or after");
        assert_eq!(immediate_read!(LIMIT), generation);
    });
    SETS.store(false, SeqCst);
    let (within, other) = (WITHIN.load(SeqCst), OTHER.load(SeqCst));
    println!(
        "{} allocations; sets by the allocator: {within} refused within another set, {other} done",
        ALLOCATIONS.load(SeqCst)
    );
    assert_eq!(MISREAD.load(SeqCst), 0);
    assert_eq!((SET_BY_ALLOCATOR.get(), immediate_read!(SET_BY_ALLOCATOR)), (7, 7));
    assert!(other > 0, "the allocator set");
    if immediate_tests::has_sites() {
        assert!(within > 0, "the library allocated under its lock, and the allocator was told");
    }
}
