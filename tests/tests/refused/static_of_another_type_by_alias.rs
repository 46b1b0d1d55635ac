//! Refused: a static whose type only the compiler can see through.

use immediate::{immediate};

type Level = std::time::Duration;

#[immediate]
static LEVEL: Level = Level::ZERO;

fn main() {}
