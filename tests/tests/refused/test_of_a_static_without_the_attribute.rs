//! Refused: a static that has no sites.

use immediate::{Immediate, immediate_if};

static TRACE: Immediate<bool> = Immediate::new(false);

fn main() {
    if immediate_if!(TRACE) {}
}
