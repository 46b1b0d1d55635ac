//! Refused: operators that are no comparison.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

fn main() {
    let _ = immediate_if!(LEVEL & 4 != 0);
    let _ = immediate_if!(LEVEL + 1 == 2);
    let _ = immediate_if!(LEVEL = 2);
    let _ = immediate_if!(LEVEL += 2);
    let _ = immediate_if!(LEVEL as u16 == 2);
    let _ = immediate_if!(LEVEL.is_power_of_two());
    let _ = immediate_if!(let 2 = LEVEL);
    let _ = immediate_if!(LEVEL >=);
}
