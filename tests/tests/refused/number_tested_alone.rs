//! Refused: a number where a `bool` is expected.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

fn main() {
    if immediate_if!(LEVEL) {}
    if immediate_if!(!LEVEL) {}
    immediate_if!(likely LEVEL => {} else {});
}
