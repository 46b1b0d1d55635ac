//! Accepted: an alias of `Immediate<T>`.

use immediate::{Immediate, immediate};

type Level = Immediate<u64>;

#[immediate]
static LEVEL: Level = Level::new(0);

fn main() {
    let _ = LEVEL.get();
}
