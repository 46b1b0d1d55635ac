//! `list` and `get`.

use immediate::control::{Answer, Program, Request, VariableState};
use serde_json::json;

use crate::arguments::Target;
use crate::client;
use crate::failure::Failure;
use crate::output::{self, BOLD, DIM, END, plain};

pub(crate) fn list(
    target: &Target,
    patterns: &[String],
    programs: bool,
    long: bool,
    json: bool,
) -> Result<(), Failure> {
    let mut clients = client::all(target)?;
    if clients.is_empty() {
        // The error says where programs are looked for.
        clients.push(client::one(target)?);
    }
    let mut found = false;
    let mut listed = Vec::new();
    for client in &mut clients {
        let variables = if programs { Vec::new() } else { client.variables(patterns)? };
        found |= !variables.is_empty();
        if json {
            let program = &client.program;
            listed.push(if programs {
                json!({ "program": program })
            } else {
                json!({ "program": program, "variables": variables })
            });
            continue;
        }
        if !programs && variables.is_empty() && !patterns.is_empty() {
            continue;
        }
        heading(&client.title(), &client.program)?;
        match (variables.is_empty(), long) {
            (true, _) => {}
            (false, true) => variables.iter().try_for_each(describe)?,
            (false, false) => short(&variables)?,
        }
    }
    if json {
        output::json(&listed)?;
    }
    if found || programs || patterns.is_empty() {
        return Ok(());
    }
    Err(Failure::Arguments(format!(
        "no variable matches {}; `immediate list` shows all, `*` stands for any text",
        patterns.join(" or ")
    )))
}

fn heading(title: &str, program: &Program) -> Result<(), Failure> {
    let (variables, sites) = (program.variables, program.sites);
    output::line(&format!(
        "{BOLD}{}{END}  {DIM}{variables} variables, {sites} sites, {}{END}",
        plain(title),
        plain(&program.program)
    ))
}

fn short(variables: &[VariableState]) -> Result<(), Failure> {
    let rows: Vec<Vec<String>> = variables
        .iter()
        .map(|one| {
            let value = match one.restored_in_ms {
                Some(left) => format!("{} (for {} s)", one.value, left.div_ceil(1000)),
                None => one.value.clone(),
            };
            let cells = [&one.name, &one.type_name, &value, &one.initial];
            let mut row: Vec<String> = cells.map(ToString::to_string).into();
            row.extend([one.sites.to_string(), one.updates.to_string(), one.doc.clone()]);
            row
        })
        .collect();
    output::table(&["NAME", "TYPE", "VALUE", "INITIAL", "SITES", "UPDATES", "DOC"], &rows)
}

fn describe(one: &VariableState) -> Result<(), Failure> {
    output::line(&format!("{BOLD}{}{END}", plain(&one.name)))?;
    let restored = one.restored_in_ms.map(|left| format!("{left} ms")).unwrap_or_default();
    let (sites, updates) = (one.sites.to_string(), one.updates.to_string());
    let shared = if one.shared { "between modules" } else { "" };
    for (what, text) in [
        ("doc", one.doc.as_str()),
        ("type", &one.type_name),
        ("value", &one.value),
        ("initial", &one.initial),
        ("restored in", &restored),
        ("sites", &sites),
        ("updates", &updates),
        ("module", &one.module),
        ("declared", &one.place),
        ("shared", shared),
    ] {
        if !text.is_empty() {
            output::line(&format!("  {what:<11}  {}", plain(text)))?;
        }
    }
    Ok(())
}

pub(crate) fn get(target: &Target, names: &[String], json: bool) -> Result<(), Failure> {
    let mut client = client::one(target)?;
    let request = Request::Get { names: names.to_vec() };
    let Answer::Variables { variables, .. } = client.ask(&request)? else {
        return Err(client.unexpected());
    };
    if json {
        return output::json(&variables);
    }
    match variables.as_slice() {
        [one] => output::line(&plain(&one.value)),
        many => many
            .iter()
            .try_for_each(|one| output::line(&plain(&format!("{}={}", one.name, one.value)))),
    }
}
