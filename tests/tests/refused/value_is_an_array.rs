//! Refused: an array, which no comparison of bits could order.

use immediate::{Immediate, immediate};

#[immediate]
static A: Immediate<[u8; 4]> = Immediate::new([0; 4]);

fn main() {}
