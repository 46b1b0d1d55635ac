//! Accepted: it uses constants only.

use immediate::{Immediate, immediate, immediate_if, immediate_read};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

const MASK: u8 = 4;

fn main() {
    let mask = 4;
    let _ = immediate_if!(LEVEL, |level| level & MASK != 0);
    let _ = immediate_if!(LEVEL, |level: u8| -> bool { level & 4 != 0 });
    let _ = immediate_read!(LEVEL) & mask != 0;
}
