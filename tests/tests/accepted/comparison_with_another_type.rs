//! Accepted: of its type.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

const WIDE: i32 = 2;

fn main() {
    if immediate_if!(LEVEL >= WIDE as u8) {}
    if immediate_if!(LEVEL == 0xff) {}
}
