//! Accepted: somebody does.

#![deny(unused_must_use)]

use immediate::{Batch, Immediate, immediate};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

fn main() {
    LEVEL.set(2).unwrap();
    Batch::new().set(&LEVEL, 3).apply().unwrap();
    let guard = immediate::lock();
    guard.set(&LEVEL, 4).unwrap();
    assert_eq!(LEVEL.get(), 4);
}
