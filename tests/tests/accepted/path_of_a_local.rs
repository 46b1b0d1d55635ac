//! Accepted: a static of the function with the attribute.

use immediate::{Immediate, immediate, immediate_if, immediate_read};

fn main() {
    #[immediate]
    static LEVEL: Immediate<u8> = Immediate::new(0);
    let _ = immediate_read!(LEVEL);
    let _ = immediate_if!(LEVEL == 0);
}
