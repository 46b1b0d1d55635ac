//! Accepted: to what they may.

use immediate::{Immediate, immediate};

use std::sync::atomic::AtomicU8;

#[immediate]
static A: Immediate<Option<&'static AtomicU8>> = Immediate::new(None);

fn main() {
    let _ = A.get();
}
