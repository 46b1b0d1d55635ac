//! Accepted: of its type, constant.

use immediate::{Immediate, immediate};

const fn level() -> u8 {
    0
}

#[immediate]
static A: Immediate<u8> = Immediate::new(b'0');
#[immediate]
static B: Immediate<u8> = Immediate::new(level());

fn main() {
    let _ = (A.get(), B.get());
}
