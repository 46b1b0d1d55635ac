//! Accepted: a reference around them.

use immediate::{Immediate, immediate};

trait Codec: Sync {}

#[immediate]
static A: Immediate<&'static &'static str> = Immediate::new(&"");
#[immediate]
static B: Immediate<&'static &'static [u8]> = Immediate::new(&(&[] as &[u8]));
#[immediate]
static C: Immediate<&'static &'static dyn Codec> = Immediate::new(&(&Plain as &dyn Codec));

struct Plain;

impl Codec for Plain {}

fn main() {
    let _ = (A.get(), B.get(), C.get());
}
