//! Accepted: those that are.

use immediate::{Immediate, immediate};

type Level = Immediate<u8>;

#[immediate]
static NUMBER: Level = Level::new(0);
#[immediate]
static ATOMIC: immediate::Immediate<u8> = immediate::Immediate::new(0);
#[immediate]
static TEXT: Immediate<&&str> = Immediate::new(&"");

fn main() {
    let _ = (NUMBER.get(), ATOMIC.get(), TEXT.get());
}
