//! `watch`.

use std::collections::HashMap;
use std::time::Duration;

use immediate::control::VariableState;
use serde_json::json;

use crate::arguments::Target;
use crate::client;
use crate::failure::Failure;
use crate::output::{self, CHANGED, DIM, END, plain};

/// What tells one variable from another: two modules may declare one name.
fn key(one: &VariableState) -> (String, String) {
    (one.name.clone(), one.module.clone())
}

pub(crate) fn watch(
    target: &Target,
    patterns: &[String],
    every: Duration,
    count: Option<usize>,
    json: bool,
) -> Result<(), Failure> {
    let mut client = client::one(target)?;
    let mut known: HashMap<_, VariableState> = HashMap::new();
    let mut is_first = true;
    let mut seen = 0;
    loop {
        let now = match client.variables(patterns) {
            Ok(now) => now,
            Err(Failure::Program(text)) => return Err(Failure::Lost(text)),
            Err(other) => return Err(other),
        };
        if is_first && now.is_empty() && !patterns.is_empty() {
            output::line(&format!(
                "{DIM}no variable matches yet; one that is loaded later will be shown{END}"
            ))?;
        }
        let current: HashMap<_, _> = now.into_iter().map(|one| (key(&one), one)).collect();
        let mut changes: Vec<(&str, Option<&VariableState>, &VariableState)> = Vec::new();
        for (key, one) in &current {
            match known.get(key) {
                None if is_first => changes.push(("is", None, one)),
                None => changes.push(("loaded", None, one)),
                Some(before) if before.updates != one.updates || before.value != one.value => {
                    changes.push(("set", Some(before), one));
                }
                Some(_) => {}
            }
        }
        let gone = known.iter().filter(|(key, _)| !current.contains_key(*key));
        changes.extend(gone.map(|(_, one)| ("unloaded", None, one)));
        changes.sort_by_key(|(_, _, one)| &one.name);
        for (what, before, one) in changes {
            tell(what, before, one, json)?;
            seen += usize::from(!is_first);
            if count.is_some_and(|count| seen >= count) {
                return Ok(());
            }
        }
        known = current;
        is_first = false;
        std::thread::sleep(every);
    }
}

fn tell(
    what: &str,
    before: Option<&VariableState>,
    one: &VariableState,
    json: bool,
) -> Result<(), Failure> {
    if json {
        let old = before.map(|before| &before.value);
        return output::json(&json!({ "change": what, "old": old, "variable": one }));
    }
    let (name, value) = (plain(&one.name), plain(&one.value));
    let text = match (what, before) {
        (_, Some(before)) => {
            let times = one.updates.saturating_sub(before.updates);
            let more = if times > 1 { format!("  {DIM}{times} sets{END}") } else { String::new() };
            format!("{name}  {} -> {CHANGED}{value}{END}{more}", plain(&before.value))
        }
        ("unloaded", None) => format!("{name}  {DIM}unloaded{END}"),
        ("loaded", None) => format!("{name}  {value}  {DIM}loaded{END}"),
        (_, None) => format!("{name}  {value}"),
    };
    output::line(&text)
}
