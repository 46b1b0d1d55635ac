//! Refused: an associated item.

use immediate::{immediate_if, immediate_read};

struct Server;

impl Server {
    const LIMIT: u8 = 1;

    fn is_full(&self) -> bool {
        immediate_read!(Self::LIMIT) > 0 && immediate_if!(Self::LIMIT >= 1)
    }
}

fn main() {
    Server.is_full();
}
