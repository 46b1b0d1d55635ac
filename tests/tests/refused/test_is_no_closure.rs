//! Refused: something else where the test belongs.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

fn is_loud(level: u8) -> bool {
    level > 2
}

fn main() {
    let _ = immediate_if!(LEVEL, is_loud(2));
    let _ = immediate_if!(LEVEL, 2);
    let _ = immediate_if!(LEVEL,);
    let _ = immediate_if!(LEVEL, || true);
    let _ = immediate_if!(LEVEL, |a, b| a == b);
    let _ = immediate_if!(LEVEL, |level| level & 4);
    let _ = immediate_if!(LEVEL, |level: u16| level == 4);
}
