//! Refused: a name that does not exist.

use immediate::{immediate_if, immediate_read};

mod config {}

fn main() {
    let _ = immediate_read!(LEVEL);
    let _ = immediate_if!(config::TRACE);
}
