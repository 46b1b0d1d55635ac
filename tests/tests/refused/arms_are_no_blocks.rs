//! Refused: arms without braces, and `else if`.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static TRACE: Immediate<bool> = Immediate::new(false);

fn main() {
    let _ = immediate_if!(TRACE => 1 else 2);
    let _ = immediate_if!(TRACE => { 1 } else 2);
    let _ = immediate_if!(TRACE => { 1 } { 2 });
    let _ = immediate_if!(TRACE { 1 } else { 2 });
    let _: i32 = immediate_if!(TRACE => { 1 });
}
