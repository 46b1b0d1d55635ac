//! Accepted: a type that an instruction holds.

use immediate::{Immediate, immediate};

#[immediate]
static A: Immediate<Option<std::num::NonZero<u8>>> = Immediate::new(None);

fn main() {
    let _ = A.get();
}
