//! Refused: a variable that is private to its module.

use immediate::{immediate_read};

mod config {
    use immediate::{Immediate, immediate};

    #[immediate]
    static LEVEL: Immediate<u8> = Immediate::new(0);
}

fn main() {
    let _ = immediate_read!(config::LEVEL);
}
