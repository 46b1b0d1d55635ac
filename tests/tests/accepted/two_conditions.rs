//! Accepted: each has its own.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);
#[immediate]
static TRACE: Immediate<bool> = Immediate::new(false);

fn main() {
    let other = true;
    let _ = immediate_if!(TRACE) && other;
    let _ = immediate_if!(TRACE) || immediate_if!(LEVEL >= 2);
    let _ = immediate_if!(LEVEL, |level| level > 1 && level < 3);
}
