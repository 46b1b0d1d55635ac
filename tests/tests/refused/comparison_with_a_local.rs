//! Refused: comparisons with what is known only when the site runs.

use immediate::{Immediate, immediate, immediate_if};

#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

struct Server {
    level: u8,
}

impl Server {
    fn level(&self) -> u8 {
        self.level
    }

    fn is_loud(&self, other: u8) -> bool {
        let mine = other + 1;
        immediate_if!(LEVEL >= mine)
            || immediate_if!(LEVEL >= self.level)
            || immediate_if!(LEVEL >= self.level())
            || immediate_if!(LEVEL >= other + 1)
            || immediate_if!(LEVEL >= mine.min(3))
            || immediate_if!(LEVEL == { other })
    }
}

fn main() {
    Server { level: 1 }.is_loud(2);
}
