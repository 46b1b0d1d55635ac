//! Refused: structs and unions that are not one value.

use immediate::{ImmediateValue};

#[derive(Clone, Copy, ImmediateValue)]
struct WithoutRepr(u8);

#[derive(Clone, Copy, ImmediateValue)]
#[repr(C)]
struct TwoFields {
    a: u8,
    b: u8,
}

#[derive(Clone, Copy, ImmediateValue)]
#[repr(transparent)]
struct NoField;

#[derive(Clone, Copy, ImmediateValue)]
#[repr(transparent)]
struct OfNoValue([u8; 4]);

#[derive(Clone, Copy, ImmediateValue)]
#[repr(C)]
union Union {
    a: u8,
}

#[derive(ImmediateValue)]
#[repr(transparent)]
struct NotCopy(u8);

fn main() {}
