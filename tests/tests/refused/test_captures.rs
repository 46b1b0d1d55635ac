//! Refused: a closure that captures a local.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

fn main() {
    let mask = 4;
    let _ = immediate_if!(LEVEL, |level| level & mask != 0);
    let _ = immediate_if!(LEVEL, move |level| level & mask != 0);
}
