//! Accepted: one that it can.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

fn main() {
    if immediate_if!(LEVEL == 255) {}
}
