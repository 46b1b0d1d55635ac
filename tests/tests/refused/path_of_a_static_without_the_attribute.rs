//! Refused: a static that has no sites.

use immediate::{Immediate, immediate_read};

static LEVEL: Immediate<u8> = Immediate::new(0);

fn main() {
    let _ = immediate_read!(LEVEL);
}
