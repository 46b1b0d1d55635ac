//! Refused: options that do not exist, or not so.

use immediate::{Immediate, immediate};

#[immediate(volatile)]
static A: Immediate<u8> = Immediate::new(0);
#[immediate(Shared)]
static B: Immediate<u8> = Immediate::new(0);
#[immediate(name)]
static C: Immediate<u8> = Immediate::new(0);
#[immediate(name = level)]
static D: Immediate<u8> = Immediate::new(0);
#[immediate("level")]
static E: Immediate<u8> = Immediate::new(0);
#[immediate(shared name = "level")]
static F: Immediate<u8> = Immediate::new(0);
#[immediate(shared = true)]
static G: Immediate<u8> = Immediate::new(0);
#[immediate(crate)]
static H: Immediate<u8> = Immediate::new(0);

fn main() {}
