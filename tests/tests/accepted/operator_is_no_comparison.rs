//! Accepted: a comparison, a test, a set.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

fn main() {
    let _ = immediate_if!(LEVEL, |level| level & 4 != 0);
    let _ = immediate_if!(LEVEL == 2 - 1);
    let _ = immediate_if!(LEVEL, |level| u16::from(level) == 2);
    let _ = immediate_if!(LEVEL, |level| level.is_power_of_two());
    let _ = immediate_if!(LEVEL, |level| matches!(level, 2));
    LEVEL.set(2).unwrap();
}
