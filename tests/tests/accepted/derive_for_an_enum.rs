//! Accepted: enums that are.

use immediate::{ImmediateValue};

#[derive(Clone, Copy, ImmediateValue)]
#[repr(u8)]
enum A {
    A,
}

#[derive(Clone, Copy, ImmediateValue)]
#[repr(i16)]
enum B {
    A = -1,
    B,
}

fn main() {
    let _ = (A::A, B::A, B::B);
}
