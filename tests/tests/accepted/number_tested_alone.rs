//! Accepted: it is compared.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

fn main() {
    if immediate_if!(LEVEL != 0) {}
    if immediate_if!(LEVEL == 0) {}
    immediate_if!(likely LEVEL != 0 => {} else {});
}
