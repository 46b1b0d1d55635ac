//! Values that were set for a time, and their return.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::introspect::Variable;
use crate::module::report;
use crate::named::{Assigned, bring_back};

/// When a return that was refused is tried again.
const AGAIN: Duration = Duration::from_secs(1);

struct Temporary {
    variable: Variable,
    /// The value that comes back.
    base: String,
    /// The value that it has until then.
    value: String,
    until: Instant,
}

/// The variables that have a value for a time.
#[derive(Default)]
pub(super) struct Temporaries(Vec<Temporary>);

impl Temporaries {
    /// Notes what a set did: for a time, or for good.
    pub(super) fn note(&mut self, set: &[Assigned], until: Option<Instant>) {
        for Assigned { variable, old, new } in set {
            let place = self.0.iter().position(|one| one.variable.place == variable.place);
            let before = place.map(|place| self.0.swap_remove(place));
            let Some(until) = until else { continue };
            // The first old value comes back, unless the program has set the variable since.
            let base = before.filter(|one| one.value == *old).map_or(old.clone(), |one| one.base);
            let (variable, value) = (variable.clone(), new.clone());
            self.0.push(Temporary { variable, base, value, until });
        }
    }

    /// When the next value comes back.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.iter().map(|one| one.until).min()
    }

    /// When the variable's value comes back.
    pub(super) fn until(&self, variable: &Variable) -> Option<Instant> {
        self.0.iter().find(|one| one.variable.place == variable.place).map(|one| one.until)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Brings back the values whose time is over: together, and only those that nobody has set
    /// since.
    pub(super) fn restore(&mut self, now: Instant) {
        let over: Vec<Temporary> = self.0.extract_if(.., |one| one.until <= now).collect();
        let values: Vec<_> =
            over.iter().map(|one| (&one.variable, one.value.as_str(), one.base.as_str())).collect();
        if let Err(error) = bring_back(&values) {
            let again = over.into_iter().map(|one| Temporary { until: now + AGAIN, ..one });
            self.0.extend(again);
            self.tell(&error);
        }
    }

    /// Brings all of them back, because the endpoint closes.
    pub(super) fn restore_all(&mut self) {
        for one in &mut self.0 {
            one.until = Instant::now();
        }
        self.restore(Instant::now());
    }

    fn tell(&self, error: &Error) {
        let names: Vec<&str> = self.0.iter().map(|one| one.variable.name()).collect();
        report(&format!("the old values of {} cannot come back yet: {error}", names.join(", ")));
    }
}
