//! Accepted: it stands outside.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

fn main() {
    let _ = !immediate_if!(LEVEL >= 2);
    let _ = !immediate_if!(LEVEL, |level| level == 2);
}
