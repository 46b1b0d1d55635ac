//! Refused: a tuple.

use immediate::{Immediate, immediate};

#[immediate]
static A: Immediate<(f64, f64)> = Immediate::new((0.0, 0.0));

fn main() {}
