//! Refused: the attribute on what is no static.

use immediate::{Immediate, immediate};

#[immediate]
const LEVEL: Immediate<u8> = Immediate::new(0);

#[immediate]
fn level() -> u8 {
    0
}

#[immediate]
struct Level(u8);

#[immediate]
static WITHOUT_VALUE: Immediate<u8>;

fn main() {
    #[immediate]
    let level = Immediate::new(0_u8);
}
