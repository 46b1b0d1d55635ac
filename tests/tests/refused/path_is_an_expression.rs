//! Refused: expressions where the path of a variable belongs.

use immediate::{Immediate, immediate, immediate_if, immediate_read};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

struct Server {
    level: u8,
}

fn main() {
    let server = Server { level: 0 };
    let _ = immediate_read!();
    let _ = immediate_read!(LEVEL + 1);
    let _ = immediate_read!(&LEVEL);
    let _ = immediate_read!(1);
    let _ = immediate_read!(server.level);
    let _ = immediate_if!();
    let _ = immediate_if!(server.level == 2);
    let _ = immediate_if!((LEVEL) == 2);
    let _ = immediate_if!(2 <= LEVEL);
}
