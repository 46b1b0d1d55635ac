//! Refused: a local variable.

use immediate::{Immediate, immediate_if, immediate_read};

fn main() {
    let level = Immediate::new(0_u8);
    let trace = true;
    let _ = immediate_read!(level);
    let _ = immediate_if!(trace);
}
