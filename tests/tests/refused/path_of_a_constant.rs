//! Refused: a constant where a variable belongs.

use immediate::{immediate_if};

const LIMIT: u8 = 1;

fn main() {
    if immediate_if!(LIMIT, |limit| limit > 2) {}
}
