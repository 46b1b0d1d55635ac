//! Refused: an option that is wider than its number.

use immediate::{Immediate, immediate};

#[immediate]
static A: Immediate<Option<u8>> = Immediate::new(None);

fn main() {}
