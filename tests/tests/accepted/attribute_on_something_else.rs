//! Accepted: on statics.

use immediate::{Immediate, immediate};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

fn main() {
    #[immediate]
    static INNER: Immediate<u8> = Immediate::new(0);
    INNER.set(LEVEL.get()).unwrap();
}
