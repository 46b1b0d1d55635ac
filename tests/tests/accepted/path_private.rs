//! Accepted: it is visible.

use immediate::{immediate_read};

mod config {
    use immediate::{Immediate, immediate};

    #[immediate]
    pub(super) static LEVEL: Immediate<u8> = Immediate::new(0);
}

fn main() {
    let _ = immediate_read!(config::LEVEL);
}
