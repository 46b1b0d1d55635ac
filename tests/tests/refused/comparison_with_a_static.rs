//! Refused: a comparison of two variables.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);
#[immediate]
static LIMIT: Immediate<u8> = Immediate::new(0);
static PLAIN: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

fn main() {
    let _ = immediate_if!(LEVEL >= LIMIT);
    let _ = immediate_if!(LEVEL >= PLAIN.load(std::sync::atomic::Ordering::Relaxed));
}
