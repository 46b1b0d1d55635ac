//! Refused: several conditions in one macro.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);
#[immediate]
static TRACE: Immediate<bool> = Immediate::new(false);

fn main() {
    let other = true;
    let _ = immediate_if!(TRACE && other);
    let _ = immediate_if!(TRACE || LEVEL >= 2);
    let _ = immediate_if!(LEVEL >= 2 && TRACE);
    let _ = immediate_if!(1 < LEVEL < 3);
    let _ = immediate_if!(LEVEL > 1, LEVEL < 3);
    let _ = immediate_if!(TRACE TRACE);
}
