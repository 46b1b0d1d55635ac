//! Refused: references that carry a length or a table.

use immediate::{Immediate, immediate};

trait Codec: Sync {}

#[immediate]
static A: Immediate<&'static str> = Immediate::new("");
#[immediate]
static B: Immediate<&'static [u8]> = Immediate::new(&[]);
#[immediate]
static C: Immediate<&'static dyn Codec> = Immediate::new(&Plain);

struct Plain;

impl Codec for Plain {}

fn main() {}
