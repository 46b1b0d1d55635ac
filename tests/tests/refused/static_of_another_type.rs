//! Refused: statics that are no `Immediate<T>`.

use immediate::{Immediate, immediate};

#[immediate]
static NUMBER: u8 = 0;
#[immediate]
static ATOMIC: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);
#[immediate]
static TEXT: &str = "";
#[immediate]
static PAIR: (u8, u8) = (0, 0);
#[immediate]
static BARE: Immediate = Immediate::new(0);

fn main() {}
