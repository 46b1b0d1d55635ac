//! Refused: setting to a value of another type.

use immediate::{Batch, Immediate, immediate};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

fn main() {
    LEVEL.set("2").unwrap();
    LEVEL.set(300_u16).unwrap();
    Batch::new().set(&LEVEL, true).apply().unwrap();
    LEVEL = Immediate::new(2);
}
