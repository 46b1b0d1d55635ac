//! Refused: a type where a variable belongs.

use immediate::{immediate_read};

struct Level;

fn main() {
    let _ = immediate_read!(Level);
}
