//! Accepted: those that do.

use immediate::{Immediate, immediate};

#[immediate()]
static A: Immediate<u8> = Immediate::new(0);
#[immediate(shared)]
static B: Immediate<u8> = Immediate::new(0);
#[immediate(name = "level")]
static C: Immediate<u8> = Immediate::new(0);
#[immediate(shared, name = "server.level", crate = ::immediate,)]
static D: Immediate<u8> = Immediate::new(0);

fn main() {
    let _ = [&A, &B, &C, &D];
}
