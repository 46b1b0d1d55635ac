//! What the torture program loads and unloads over and over: sites of a variable that it shares.

#![allow(unsafe_code)] // its functions are found by name

use immediate::{Immediate, immediate, immediate_if, immediate_read};

/// As the torture program declares it.
#[immediate(shared, name = "torture.count")]
static COUNT: Immediate<u64> = Immediate::new(0);

/// Read before anybody calls the plugin: it has to be up to date by then.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn plugin_first() -> u64 {
    immediate_read!(COUNT)
}

/// The same at another site.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn plugin_second() -> u64 {
    let count = immediate_read!(COUNT);
    // Functions that differ in more than their name: LLVM merges identical ones, and their sites.
    std::hint::black_box(count ^ 1) ^ 1
}

/// Whether the count is odd, by a branch.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn plugin_odd() -> u64 {
    u64::from(immediate_if!(COUNT, |count| count & 1 != 0))
}
