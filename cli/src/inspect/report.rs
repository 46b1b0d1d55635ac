//! What was found, as text or JSON, and the exit status that says so.

use serde_json::json;

use super::Contents;
use super::diff::Difference;
use super::tables::Tables;
use crate::failure::Failure;
use crate::output::{self, BOLD, CHANGED, DIM, END, plain};

pub(super) fn contents(contents: &Contents) -> Result<(), Failure> {
    let (variables, sites) = (contents.variables.len(), contents.sites.len());
    output::line(&format!(
        "{BOLD}{}{END}  {DIM}{}, {variables} variables, {sites} sites{END}",
        plain(&contents.file),
        contents.target
    ))?;
    let mut names: Vec<&String> = contents.variables.iter().collect();
    // Variables of other modules are read here, too.
    names.extend(contents.sites.iter().map(|site| &site.variable));
    names.sort();
    names.dedup();
    for name in names {
        let own: Vec<_> = contents.sites.iter().filter(|site| site.variable == *name).collect();
        let number = own.len();
        output::line(&format!("{BOLD}{}{END}  {DIM}{number} sites{END}", plain(name)))?;
        for site in own {
            output::line(&format!(
                "  {:#010x}  {:<34}  {}  {DIM}{}{END}",
                site.address,
                site.instruction,
                plain(&site.form),
                plain(format!("{}  {}", site.function, site.place).trim())
            ))?;
        }
    }
    Ok(())
}

pub(super) fn faults(
    file: &str,
    tables: &Tables,
    faults: &[String],
    json: bool,
) -> Result<(), Failure> {
    let (variables, sites) = (tables.variables.len(), tables.sites.len());
    if json {
        output::json(&json!({
            "file": file, "variables": variables, "sites": sites, "faults": faults,
        }))?;
    } else {
        for fault in faults {
            output::line(&plain(fault))?;
        }
        if faults.is_empty() {
            output::line(&format!(
                "{}: {variables} variables, {sites} sites, all as recorded",
                plain(file)
            ))?;
        }
    }
    match faults.len() {
        0 => Ok(()),
        number => Err(Failure::Found(format!("{file} has {number} faults"))),
    }
}

pub(super) fn differences(
    file: &str,
    pid: u32,
    sites: usize,
    differences: &[Difference],
    json: bool,
) -> Result<(), Failure> {
    if json {
        output::json(
            &json!({ "file": file, "pid": pid, "sites": sites, "differences": differences }),
        )?;
    } else {
        for one in differences {
            output::line(&format!(
                "{:#010x}  {BOLD}{}{END}  {} -> {CHANGED}{}{END}  {DIM}{}{END}",
                one.address,
                plain(&one.variable),
                one.file,
                one.process,
                plain(&one.why)
            ))?;
        }
        if differences.is_empty() {
            output::line(&format!("process {pid}: all {sites} sites are as in {}", plain(file)))?;
        }
    }
    match differences.len() {
        0 => Ok(()),
        number => Err(Failure::Found(format!("{number} of {sites} sites differ in process {pid}"))),
    }
}
