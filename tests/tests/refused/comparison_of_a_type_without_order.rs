//! Refused: a derived type that does not compare.

use immediate::{Immediate, ImmediateValue, immediate, immediate_if};

#[derive(Clone, Copy, ImmediateValue)]
#[repr(u8)]
enum Mode {
    Fast,
    Safe,
}

#[immediate]
static MODE: Immediate<Mode> = Immediate::new(Mode::Fast);

fn main() {
    let _ = immediate_if!(MODE == Mode::Safe);
    let _ = immediate_if!(MODE >= Mode::Safe);
}
