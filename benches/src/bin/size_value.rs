//! 1,000 value sites of four bytes, of one variable.

#![allow(unsafe_code)]

use immediate::{Immediate, immediate, immediate_read};

#[immediate]
static LIMIT: Immediate<u32> = Immediate::new(3);

immediate_benches::thousand_checks!(|number, other| {
    // In place of the other number.
    let _ = other;
    number ^= u64::from(immediate_read!(LIMIT));
});
