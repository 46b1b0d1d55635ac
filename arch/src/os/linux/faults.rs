//! The seam for tests that make system calls fail: every call that an update makes passes here.
//!
//! Compiled with the feature `faults` only, which no package but the tests turns on.

use std::sync::atomic::{AtomicI32, AtomicIsize, AtomicUsize, Ordering};

/// Calls still to let pass; negative while nothing is to fail.
static REMAINING: AtomicIsize = AtomicIsize::new(-1);
static ERRNO: AtomicI32 = AtomicI32::new(0);
/// How many calls fail from there on.
static FAILURES: AtomicIsize = AtomicIsize::new(0);
static PASSED: AtomicUsize = AtomicUsize::new(0);

/// Lets `calls` calls pass, then makes `failures` of them fail with `errno`.
pub fn arm(calls: u32, failures: u32, errno: i32) {
    ERRNO.store(errno, Ordering::Relaxed);
    FAILURES.store(failures as isize, Ordering::Relaxed);
    REMAINING.store(calls as isize, Ordering::SeqCst);
}

/// Lets all calls pass again; tells whether a call was made to fail.
pub fn disarm() -> bool {
    REMAINING.swap(-1, Ordering::SeqCst) == 0
}

/// How many calls have come here.
#[must_use]
pub fn passed() -> u64 {
    PASSED.load(Ordering::Relaxed) as u64
}

/// The `errno` with which the call that comes here now is to fail.
pub(crate) fn due() -> Option<i32> {
    PASSED.fetch_add(1, Ordering::Relaxed);
    let remaining = REMAINING.load(Ordering::SeqCst);
    if remaining > 0 {
        REMAINING.store(remaining - 1, Ordering::SeqCst);
    }
    if remaining != 0 || FAILURES.load(Ordering::Relaxed) <= 0 {
        return None;
    }
    FAILURES.fetch_sub(1, Ordering::Relaxed);
    Some(ERRNO.load(Ordering::Relaxed))
}
