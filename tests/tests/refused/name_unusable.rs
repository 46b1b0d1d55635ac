//! Refused: names that IMMEDIATE=name=value could not hold.

use immediate::{Immediate, immediate};

#[immediate(name = "")]
static A: Immediate<u8> = Immediate::new(0);
#[immediate(name = "a,b")]
static B: Immediate<u8> = Immediate::new(0);
#[immediate(name = "a=b")]
static C: Immediate<u8> = Immediate::new(0);
#[immediate(name = "the level")]
static D: Immediate<u8> = Immediate::new(0);
#[immediate(name = "the\tlevel\n")]
static E: Immediate<u8> = Immediate::new(0);

fn main() {}
