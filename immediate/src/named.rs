//! Setting variables by name, many at one instant.

use crate::error::Error;
use crate::initial::{assign, unknown};
use crate::introspect::{Variable, lookup};
use crate::lock;
use crate::registry::{EntryId, Registry};
use crate::runtime;
use crate::update::{self, Mode};

/// A variable that was set by name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Assigned {
    /// The variable.
    pub variable: Variable,
    /// Its value before, as text.
    pub old: String,
    /// Its value now, as text.
    pub new: String,
}

/// Sets variables by name from text, in the notation of [`Variable::value`]: one batch, at one
/// instant, all or nothing.
///
/// A name that several modules declare means all of its variables. Of several values for one
/// variable the last counts. In a library that is linked with a copy of this crate of its own, while
/// another copy keeps the variables of the process, one variable at a time.
///
/// # Errors
///
/// [`Error::UnknownName`] and [`Error::BadValue`] name the first item that cannot be used and what
/// would be valid; otherwise as [`Batch::apply`](crate::Batch::apply). Nothing has changed.
///
/// ```
/// use immediate::{Immediate, immediate};
///
/// #[immediate(name = "server.queue")]
/// static QUEUE: Immediate<u16> = Immediate::new(64);
/// #[immediate(name = "server.trace")]
/// static TRACE: Immediate<bool> = Immediate::new(false);
///
/// let error = immediate::set_named(&[("server.trace", "on"), ("server.queue", "many")]);
/// assert!(error.is_err());
/// assert!(!TRACE.get(), "nothing has changed");
///
/// let set = immediate::set_named(&[("server.trace", "on"), ("server.queue", "128")])?;
/// assert_eq!((set[1].old.as_str(), set[1].new.as_str()), ("64", "128"));
/// assert_eq!((TRACE.get(), QUEUE.get()), (true, 128));
/// # Ok::<(), immediate::Error>(())
/// ```
pub fn set_named(assignments: &[(&str, &str)]) -> Result<Vec<Assigned>, Error> {
    if runtime::foreign().is_some() {
        return set_elsewhere(assignments);
    }
    let setters = lock::setters()?;
    let mut locked = setters.registry()?;
    let registry = locked.registry();
    let mut wanted = Vec::with_capacity(assignments.len());
    for (name, text) in assignments {
        let before = wanted.len();
        let entries = registry.entries().filter(|(_, entry)| entry.descriptor.name() == *name);
        wanted.extend(entries.map(|(id, _)| (id, *text)));
        if wanted.len() == before {
            let known = registry.entries().map(|(_, entry)| entry.descriptor.name());
            return Err(unknown(known, name));
        }
    }
    set(registry, &wanted)
}

/// Brings back old values, given as variable, value until now, old value: together, and only where
/// the variable still has the value until now and its module is still loaded.
#[cfg(all(feature = "control", target_os = "linux"))]
pub(crate) fn bring_back(values: &[(&Variable, &str, &str)]) -> Result<(), Error> {
    if runtime::foreign().is_some() {
        let mut still = values.iter().filter(|(variable, value, _)| variable.value() == *value);
        return still.try_for_each(|(variable, _, old)| variable.set_text(old));
    }
    let setters = lock::setters()?;
    let mut locked = setters.registry()?;
    let registry = locked.registry();
    let mut wanted = Vec::with_capacity(values.len());
    for (variable, value, old) in values {
        let id = EntryId::at(variable.place);
        if let Some(entry) = registry.entry(id)
            && variable.is(&Variable::new(registry, id, entry))
            && entry.descriptor.show(entry.bits()) == *value
        {
            wanted.push((id, *old));
        }
    }
    set(registry, &wanted).map(|_| ())
}

fn set(registry: &mut Registry, wanted: &[(EntryId, &str)]) -> Result<Vec<Assigned>, Error> {
    let mut changes = Vec::with_capacity(wanted.len());
    let mut assigned: Vec<Assigned> = Vec::with_capacity(wanted.len());
    for (id, text) in wanted {
        let Some(entry) = registry.entry(*id) else { continue };
        let change = assign(entry, text)?;
        let new = entry.descriptor.show(change.bits());
        changes.push(change);
        match assigned.iter_mut().find(|one| one.variable.place == id.place()) {
            Some(again) => again.new = new,
            None => {
                let old = entry.descriptor.show(entry.bits());
                assigned.push(Assigned { variable: Variable::new(registry, *id, entry), old, new });
            }
        }
    }
    if !changes.is_empty() {
        update::apply(registry, &changes, Mode::Live)?;
    }
    Ok(assigned)
}

/// Sets variables of a runtime in another copy of this library, which takes one by name.
fn set_elsewhere(assignments: &[(&str, &str)]) -> Result<Vec<Assigned>, Error> {
    let [(name, text)] = assignments else {
        return Err(Error::Elsewhere {
            text: "variables are set together by name only in the copy of this library that keeps \
                   them, which another library of this process has; set one at a time"
                .into(),
        });
    };
    let variable = lookup(name)?;
    let old = variable.value();
    variable.set_text(text)?;
    let new = variable.value();
    Ok(vec![Assigned { variable, old, new }])
}
