//! Refused: a reference to what threads may not share.

use immediate::{Immediate, immediate};

use std::cell::Cell;

#[immediate]
static A: Immediate<Option<&'static Cell<u8>>> = Immediate::new(None);

fn main() {}
