//! Accepted: the value is read and compared.

use immediate::{Immediate, immediate, immediate_if, immediate_read};

const OTHER: u8 = 2;

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
        immediate_read!(LEVEL) >= other
            || immediate_read!(LEVEL) >= self.level()
            || immediate_if!(LEVEL >= OTHER + 1)
            || immediate_if!(LEVEL == { OTHER })
            || immediate_if!(LEVEL == u8::MAX.saturating_sub(1))
    }
}

fn main() {
    Server { level: 1 }.is_loud(2);
}
