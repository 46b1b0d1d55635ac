//! The switches as atomics that are read with relaxed loads: what most programs do today.
//!
//! # Invariant
//!
//! `A1` `TABLE` holds the address of a `&'static Table` that is never written: its initial one, or
//! one that `apply` was given.

#![allow(unsafe_code)]

use std::ptr::from_ref;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32};

use immediate::Error;

use crate::switches::{Change, LOW_LIMIT, Switches};
use crate::table::{FIRST, Table};

static PROFILE_LINES: AtomicBool = AtomicBool::new(false);
static PROFILE_WORDS: AtomicBool = AtomicBool::new(false);
static PROFILE_MATCHES: AtomicBool = AtomicBool::new(false);
static PROFILE_CAPITALS: AtomicBool = AtomicBool::new(false);
static VERBOSITY: AtomicU8 = AtomicU8::new(0);
static LIMIT: AtomicU32 = AtomicU32::new(LOW_LIMIT);
static TABLE: AtomicPtr<Table> = AtomicPtr::new((&raw const FIRST).cast_mut());

/// Switches in memory.
pub(crate) struct Atomics;

impl Switches for Atomics {
    const HAS_SITES: bool = false;

    #[inline(always)]
    fn lines() -> bool {
        PROFILE_LINES.load(Relaxed)
    }

    #[inline(always)]
    fn words() -> bool {
        PROFILE_WORDS.load(Relaxed)
    }

    #[inline(always)]
    fn matches() -> bool {
        PROFILE_MATCHES.load(Relaxed)
    }

    #[inline(always)]
    fn capitals() -> bool {
        PROFILE_CAPITALS.load(Relaxed)
    }

    #[inline(always)]
    fn logs_lines() -> bool {
        VERBOSITY.load(Relaxed) >= 1
    }

    #[inline(always)]
    fn logs_matches() -> bool {
        VERBOSITY.load(Relaxed) >= 2
    }

    #[inline(always)]
    fn logs_digests() -> bool {
        VERBOSITY.load(Relaxed) & 4 != 0
    }

    #[inline(always)]
    fn limit() -> u32 {
        LIMIT.load(Relaxed)
    }

    #[inline(always)]
    fn table() -> &'static Table {
        // SAFETY: A1.
        unsafe { &*TABLE.load(Relaxed) }
    }

    fn apply(changes: &[Change]) -> Result<(), Error> {
        for change in changes {
            match *change {
                Change::Lines(to) => PROFILE_LINES.store(to, Relaxed),
                Change::Words(to) => PROFILE_WORDS.store(to, Relaxed),
                Change::Matches(to) => PROFILE_MATCHES.store(to, Relaxed),
                Change::Capitals(to) => PROFILE_CAPITALS.store(to, Relaxed),
                Change::Verbosity(to) => VERBOSITY.store(to, Relaxed),
                Change::Limit(to) => LIMIT.store(to, Relaxed),
                Change::Table(to) => TABLE.store(from_ref(to).cast_mut(), Relaxed),
            }
        }
        Ok(())
    }
}
