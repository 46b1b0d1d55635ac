//! Accepted: they stand outside of the macro.

use immediate::{Immediate, immediate, immediate_if, immediate_read};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

fn main() {
    let _ = immediate_read!(LEVEL) + 1;
    let _ = immediate_read!(self::LEVEL);
    let _ = immediate_if!(crate::LEVEL == 2);
    let _ = immediate_if!(LEVEL >= 2);
}
