//! How a batch is made safe against threads that are executing its sites.

pub(crate) mod int3;
pub(crate) mod quadword;
pub(crate) mod single;
pub(crate) mod stop_world;

use std::fmt;

/// How a batch is made safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// A trap stands on every site while it changes. One instant for all threads.
    Int3,
    /// One store of an aligned word a site.
    Quadword,
    /// Every other thread waits in a signal handler. One instant for all threads.
    StopWorld,
    /// The process has one thread, which is the one that changes: no synchronisation.
    Single,
}

impl Protocol {
    /// Its name, as in `IMMEDIATE_PROTOCOL`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Int3 => "int3",
            Protocol::Quadword => "quadword",
            Protocol::StopWorld => "stop-world",
            Protocol::Single => "single",
        }
    }

    /// Those that a program with several threads can choose, the best first.
    pub const CHOICES: &[Protocol] = &[Protocol::Int3, Protocol::Quadword, Protocol::StopWorld];

    /// Whether a batch is one instant for all threads, all sites and all variables.
    #[must_use]
    pub fn is_one_instant(self) -> bool {
        !matches!(self, Protocol::Quadword)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
