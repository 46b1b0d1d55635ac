//! Initial values from the environment: `IMMEDIATE=name=value,…`.
//!
//! Each module's variables take their values while the module registers, before any other of its
//! code runs. A name or a value that cannot be used is reported on standard error, and nothing else
//! changes. Names that no module has declared by the time the executable registers are reported
//! then; a plugin that is loaded later still gets its value.

use std::sync::OnceLock;

use crate::batch::Change;
use crate::error::Error;
use crate::module::report;
use crate::registry::{Entry, Registry};
use crate::similar::similar;
use crate::variable::Untyped;

static ASSIGNMENTS: OnceLock<Vec<(String, String)>> = OnceLock::new();

/// The assignments in the environment, in order.
fn assignments() -> &'static [(String, String)] {
    ASSIGNMENTS.get_or_init(|| environment("IMMEDIATE").map_or_else(Vec::new, |text| parse(&text)))
}

/// A setting from the environment; nothing in a program that runs with more rights than its caller.
pub(crate) fn environment(setting: &str) -> Option<String> {
    if has_more_rights_than_caller() {
        return None;
    }
    std::env::var_os(setting).map(|text| text.to_string_lossy().into_owned())
}

cfg_select! {
    all(target_os = "linux", not(miri)) => {
        #[allow(unsafe_code)]
        fn has_more_rights_than_caller() -> bool {
            // SAFETY: reads the auxiliary vector (`getauxval(3)`).
            unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
        }
    }
    _ => {
        fn has_more_rights_than_caller() -> bool {
            false
        }
    }
}

/// Splits at commas, then at the first `=`: names hold `::` but no `=`.
fn parse(text: &str) -> Vec<(String, String)> {
    text.split(',')
        .filter(|item| !item.trim().is_empty())
        .map(|item| match item.split_once('=') {
            Some((name, value)) => (name.trim().to_string(), value.to_string()),
            None => (item.trim().to_string(), String::new()),
        })
        .collect()
}

/// Gives the variables that the module at `place` declares their initial values; returns the lines
/// to report.
pub(crate) fn apply(registry: &mut Registry, place: usize, is_executable: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, text) in assignments() {
        let mut is_known = false;
        for (_, entry) in registry.entries() {
            if entry.descriptor.name() != name.as_str() {
                continue;
            }
            is_known = true;
            if entry.module == Some(place) {
                match assign(entry, text) {
                    Ok(change) => entry.store(change.bits()),
                    Err(error) => lines.push(format!("IMMEDIATE: {error}")),
                }
            }
        }
        if !is_known && is_executable {
            let names = registry.entries().map(|(_, entry)| entry.descriptor.name());
            let error = unknown(names, name);
            lines.push(format!(
                "IMMEDIATE: {error} (a plugin that is loaded later may still declare it)"
            ));
        }
    }
    lines
}

/// Registers a variable whose module is not known, with its initial value.
pub(crate) fn enter(registry: &mut Registry, variable: Untyped<'static>) {
    let Some(id) = registry.add_variable(variable, None, "") else { return };
    let Some(entry) = registry.entry(id) else { return };
    for (name, text) in assignments() {
        if entry.descriptor.name() == name.as_str() {
            match assign(entry, text) {
                Ok(change) => change.commit(),
                Err(error) => report(&format!("IMMEDIATE: {error}")),
            }
        }
    }
}

/// The change of a variable to the value that the text says.
pub(crate) fn assign(entry: &Entry, text: &str) -> Result<Change<'static>, Error> {
    match entry.descriptor.parse(text) {
        Ok(bits) => Ok(Change::of_entry(entry, bits)),
        Err(valid) => Err(Error::BadValue {
            variable: entry.descriptor.name().to_string(),
            type_name: entry.descriptor.type_name(),
            found: text.to_string(),
            valid,
        }),
    }
}

/// The error for a name that no variable has, with names that are similar.
pub(crate) fn unknown<'a>(known: impl Iterator<Item = &'a str>, name: &str) -> Error {
    Error::UnknownName { name: name.to_string(), similar: similar(known.collect(), name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_split_at_commas() {
        let pairs = parse("a::B=1, c=x=y,,d");
        let expected = [("a::B", "1"), ("c", "x=y"), ("d", "")];
        assert_eq!(pairs.len(), 3);
        for ((name, value), (want, text)) in pairs.iter().zip(expected) {
            assert_eq!((name.as_str(), value.as_str()), (want, text));
        }
    }
}
