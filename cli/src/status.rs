//! `status`.

use immediate::control::{Answer, Request, State};

use crate::arguments::Target;
use crate::client;
use crate::failure::Failure;
use crate::output::{self, BOLD, END, plain};

pub(crate) fn status(target: &Target, json: bool) -> Result<(), Failure> {
    let mut client = client::one(target)?;
    let Answer::Status(state) = client.ask(&Request::Status {})? else {
        return Err(client.unexpected());
    };
    if json {
        return output::json(&state);
    }
    output::line(&format!("{BOLD}{}{END}", plain(&client.title())))?;
    rows(&state)
        .iter()
        .try_for_each(|(what, text)| output::line(&format!("  {what:<9}  {}", plain(text))))
}

fn rows(state: &State) -> Vec<(&'static str, String)> {
    let none = || match (&state.refusal, state.target.as_str()) {
        (None, "plain") => "none needed: plain loads".to_string(),
        _ => "none".to_string(),
    };
    let instant = if state.one_instant { "one instant for all threads" } else { "site by site" };
    let mut rows = vec![
        ("target", state.target.clone()),
        ("protocol", state.protocol.clone().unwrap_or_else(none)),
        ("writer", state.writer.clone().unwrap_or_else(none)),
        ("a set is", instant.to_string()),
    ];
    rows.extend(state.rejected.iter().map(|why| ("not", why.clone())));
    rows.extend(state.rejected_writers.iter().map(|why| ("not", why.clone())));
    rows.extend(state.refusal.iter().map(|why| ("refused", why.clone())));
    rows.push(("loaded", format!("{} variables, {} sites", state.variables, state.sites)));
    rows.extend(state.modules.iter().map(|module| {
        let (variables, sites) = (module.variables, module.sites);
        let text =
            format!("{} at {:#x}: {variables} variables, {sites} sites", module.path, module.base);
        ("module", text)
    }));
    rows.push(("updates", state.updates.to_string()));
    rows.push(("trapping", format!("{} sites", state.trapping)));
    let cost = state.cost;
    if cost.sets > 0 {
        let (last, longest) = (cost.last_micros, cost.longest_micros);
        let text = format!("{}: last {last} µs, longest {longest} µs", cost.sets);
        rows.push(("sets here", text));
    }
    rows.push(("temporary", format!("{} variables", state.temporary)));
    rows.push(("clients", state.clients.to_string()));
    rows
}
