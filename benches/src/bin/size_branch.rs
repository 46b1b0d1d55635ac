//! 1,000 branch sites of one variable.

#![allow(unsafe_code)]

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static SWITCH: Immediate<bool> = Immediate::new(false);

immediate_benches::thousand_checks!(|number, other| {
    number ^= other;
    if immediate_if!(SWITCH) {
        return number;
    }
});
