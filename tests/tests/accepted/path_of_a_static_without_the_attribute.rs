//! Accepted: the attribute is there.

use immediate::{Immediate, immediate, immediate_read};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

fn main() {
    let _ = immediate_read!(LEVEL);
}
