//! Accepted: to one of its type.

use immediate::{Batch, Immediate, immediate};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

fn main() {
    LEVEL.set(2).unwrap();
    Batch::new().set(&LEVEL, 3).apply().unwrap();
}
