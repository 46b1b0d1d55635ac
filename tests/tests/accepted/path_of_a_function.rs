//! Accepted: it reads a variable.

use immediate::{Immediate, immediate, immediate_read};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

fn level() -> u8 {
    immediate_read!(LEVEL)
}

fn main() {
    let _ = level();
}
