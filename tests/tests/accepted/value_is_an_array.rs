//! Accepted: a type that an instruction holds.

use immediate::{Immediate, immediate};

#[immediate]
static A: Immediate<u32> = Immediate::new(u32::from_ne_bytes([0; 4]));

fn main() {
    let _ = A.get();
}
