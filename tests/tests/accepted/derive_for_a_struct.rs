//! Accepted: `repr(transparent)` around one value.

use immediate::{ImmediateValue};

#[derive(Clone, Copy, ImmediateValue)]
#[repr(transparent)]
struct A(u8);

#[derive(Clone, Copy, ImmediateValue)]
#[repr(transparent)]
struct B {
    value: f64,
}

#[derive(Clone, Copy, ImmediateValue)]
#[repr(transparent)]
struct C(A);

fn main() {
    let _ = (A(1), B { value: 1.0 }.value, C(A(2)));
}
