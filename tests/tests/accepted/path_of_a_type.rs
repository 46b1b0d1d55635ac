//! Accepted: a variable of this type.

use immediate::{Immediate, ImmediateValue, immediate, immediate_read};

#[derive(Clone, Copy, ImmediateValue)]
#[repr(transparent)]
struct Level(u8);

#[immediate]
static LEVEL: Immediate<Level> = Immediate::new(Level(0));

fn main() {
    let _ = immediate_read!(LEVEL).0;
}
