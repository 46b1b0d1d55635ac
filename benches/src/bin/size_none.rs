//! The twin of the other programs `size_…`: the same code, without checks.

#![allow(unsafe_code)]

immediate_benches::thousand_checks!(|number, other| {
    number ^= other;
});
