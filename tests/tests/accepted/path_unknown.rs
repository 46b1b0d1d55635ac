//! Accepted: the name of a variable in a module.

use immediate::{immediate_if, immediate_read};

mod config {
    use immediate::{Immediate, immediate};

    #[immediate]
    pub static LEVEL: Immediate<u8> = Immediate::new(0);
    #[immediate]
    pub(crate) static TRACE: Immediate<bool> = Immediate::new(false);
}

fn main() {
    let _ = immediate_read!(config::LEVEL);
    let _ = immediate_if!(config::TRACE);
}
