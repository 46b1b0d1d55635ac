//! A place that counts or times, and the number of its variable.

use std::sync::atomic::{AtomicU32, Ordering};

use super::collector;
use crate::variable::Immediate;

/// The most variables that are counted.
pub(super) const MAX_POINTS: usize = 512;

/// A place in the code; all places behind one variable have one number.
#[derive(Debug)]
pub struct Point {
    variable: &'static Immediate<bool>,
    /// The number plus one; 0 before the first event.
    number: AtomicU32,
}

impl Point {
    /// A place behind this variable.
    #[must_use]
    pub const fn new(variable: &'static Immediate<bool>) -> Self {
        Point { variable, number: AtomicU32::new(0) }
    }

    /// The number of the variable, or `None` when there are too many of them.
    pub(super) fn number(&self) -> Option<u32> {
        match self.number.load(Ordering::Relaxed) {
            0 => self.assign(),
            number => Some(number - 1),
        }
    }

    #[cold]
    fn assign(&self) -> Option<u32> {
        let number = collector::lock().number(self.variable.name())?;
        self.number.store(number + 1, Ordering::Relaxed);
        Some(number)
    }
}
