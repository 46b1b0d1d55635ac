//! Accepted: `static`.

use immediate::{Immediate, immediate};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

fn main() {
    LEVEL.set(1).unwrap();
}
