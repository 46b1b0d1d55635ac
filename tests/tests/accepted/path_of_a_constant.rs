//! Accepted: a variable, compared with a constant.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

const LIMIT: u8 = 1;

fn main() {
    if immediate_if!(LEVEL, |level| level > LIMIT) {}
}
