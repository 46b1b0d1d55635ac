//! Refused: a function where a variable belongs.

use immediate::{immediate_read};

fn level() -> u8 {
    1
}

fn main() {
    let _ = immediate_read!(level);
}
