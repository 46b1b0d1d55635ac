//! Accepted: blocks.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static TRACE: Immediate<bool> = Immediate::new(false);

fn main() {
    let _ = immediate_if!(TRACE => { 1 } else { 2 });
    let _: i32 = if immediate_if!(TRACE) { 1 } else { 2 };
    immediate_if!(TRACE => {});
}
