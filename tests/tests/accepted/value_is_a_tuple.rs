//! Accepted: a type that an instruction holds.

use immediate::{Immediate, immediate};

#[immediate]
static A: Immediate<&'static (f64, f64)> = Immediate::new(&(0.0, 0.0));

fn main() {
    let _ = A.get();
}
