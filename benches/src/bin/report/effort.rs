//! How much the report does.

use std::time::Duration;

/// How much the report does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Some minutes.
    Full,
    /// Less than one.
    Quick,
    /// Each experiment as little as it can.
    Smoke,
}

impl Effort {
    /// Its name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Effort::Full => "full",
            Effort::Quick => "quick",
            Effort::Smoke => "smoke",
        }
    }

    /// The time that something has, which has so many seconds in a quick run.
    pub(crate) fn time(self, seconds: f64) -> Duration {
        Duration::from_secs_f64(match self {
            Effort::Full => seconds * 6.0,
            Effort::Quick => seconds,
            Effort::Smoke => seconds / 50.0,
        })
    }

    /// How many rounds there are, however long they take.
    pub(crate) fn least_rounds(self) -> usize {
        match self {
            Effort::Full => 7,
            Effort::Quick => 3,
            Effort::Smoke => 1,
        }
    }
}
