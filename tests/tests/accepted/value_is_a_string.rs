//! Accepted: a type that an instruction holds.

use immediate::{Immediate, immediate};

#[immediate]
static A: Immediate<&'static String> = Immediate::new({
    static EMPTY: String = String::new();
    &EMPTY
});

fn main() {
    let _ = A.get();
}
