//! Accepted: names that it can.

use immediate::{Immediate, immediate};

#[immediate(name = "server.log-level/größe")]
static A: Immediate<u8> = Immediate::new(0);

fn main() {
    assert_eq!(A.name(), "server.log-level/größe");
}
