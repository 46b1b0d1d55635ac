//! The plugin in Rust of the example `plugin_host`.
//!
//! Nothing registers anything here: declaring a variable and reading it is all. `PROFILE` and `ROUNDS`
//! are the host's, because both declare them shared under one name.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

use immediate::{Immediate, immediate, immediate_if, immediate_read};

/// Counts the requests that are served.
#[immediate(shared, name = "host.profile")]
static PROFILE: Immediate<bool> = Immediate::new(false);

/// How often a number is mixed.
#[immediate(shared, name = "host.rounds")]
static ROUNDS: Immediate<u32> = Immediate::new(1);

static PROFILED: AtomicU64 = AtomicU64::new(0);

/// Which build this is.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_version() -> u64 {
    if cfg!(feature = "newer") { 2 } else { 1 }
}

/// Serves a request.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_serve(number: u64) -> u64 {
    if immediate_if!(PROFILE) {
        PROFILED.fetch_add(1, Ordering::Relaxed);
    }
    let mut mixed = number;
    for _ in 0..immediate_read!(ROUNDS) {
        mixed = mixed.wrapping_mul(3).wrapping_add(plugin_version());
    }
    mixed
}

/// How many requests have been counted.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_profiled() -> u64 {
    PROFILED.load(Ordering::Relaxed)
}
