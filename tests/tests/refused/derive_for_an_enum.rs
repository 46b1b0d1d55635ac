//! Refused: enums that are no plain numbers.

use immediate::{ImmediateValue};

#[derive(Clone, Copy, ImmediateValue)]
enum WithoutRepr {
    A,
}

#[derive(Clone, Copy, ImmediateValue)]
#[repr(C)]
enum WithReprC {
    A,
}

#[derive(Clone, Copy, ImmediateValue)]
#[repr(u8)]
enum WithFields {
    A(u8),
    B { value: u8 },
}

#[derive(Clone, Copy, ImmediateValue)]
#[repr(u8)]
enum WithoutVariants {}

#[derive(ImmediateValue)]
#[repr(u8)]
enum NotCopy {
    A,
}

fn main() {}
