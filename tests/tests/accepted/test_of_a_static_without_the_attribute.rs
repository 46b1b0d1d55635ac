//! Accepted: the attribute is there.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static TRACE: Immediate<bool> = Immediate::new(false);

fn main() {
    if immediate_if!(TRACE) {}
}
