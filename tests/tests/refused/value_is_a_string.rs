//! Refused: a value on the heap.

use immediate::{Immediate, immediate};

#[immediate]
static A: Immediate<String> = Immediate::new(String::new());

fn main() {}
