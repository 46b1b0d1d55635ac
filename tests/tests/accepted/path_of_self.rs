//! Accepted: a variable; an associated constant is what it is compared with.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

struct Server;

impl Server {
    const LIMIT: u8 = 1;

    fn is_full(&self) -> bool {
        immediate_if!(LEVEL >= Self::LIMIT)
    }
}

fn main() {
    Server.is_full();
}
