//! Accepted: a closure with one argument that gives a `bool`.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

fn is_loud(level: u8) -> bool {
    level > 2
}

fn main() {
    let _ = immediate_if!(LEVEL, |level| is_loud(level));
    let _ = immediate_if!(LEVEL, is_loud);
    let _ = immediate_if!(likely LEVEL, u8::is_power_of_two);
    let _ = immediate_if!(LEVEL, |level| level & 4 != 0);
    let _ = immediate_if!(LEVEL, |level: u8| u16::from(level) == 4);
}
