//! Refused: `static mut`.

use immediate::{Immediate, immediate};

#[immediate]
static mut LEVEL: Immediate<u8> = Immediate::new(0);

fn main() {}
