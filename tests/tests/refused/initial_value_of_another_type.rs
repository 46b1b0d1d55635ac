//! Refused: an initial value of another type, and one that is no constant.

use immediate::{Immediate, immediate};

fn level() -> u8 {
    0
}

#[immediate]
static A: Immediate<u8> = Immediate::new("0");
#[immediate]
static B: Immediate<u8> = Immediate::new(level());
#[immediate]
static C: Immediate<u8> = 0;

fn main() {}
