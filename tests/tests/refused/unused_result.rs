//! Refused: a set or a batch whose outcome nobody looks at.

#![deny(unused_must_use)]

use immediate::{Batch, Immediate, immediate};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

fn main() {
    LEVEL.set(2);
    Batch::new().set(&LEVEL, 3);
    immediate::lock();
    LEVEL.get();
}
