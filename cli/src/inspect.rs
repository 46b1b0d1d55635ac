//! `inspect`: what a file holds, without running it.

#[cfg(test)]
mod broken;
mod check;
mod code;
mod diff;
mod image;
mod report;
mod source;
mod tables;

use std::path::Path;

use image::Image;
use serde::Serialize;
use source::Source;
use tables::{Form, Site, Tables};

use crate::failure::Failure;
use crate::output;

/// A site as it is shown.
#[derive(Debug, Serialize)]
struct Shown {
    variable: String,
    address: u64,
    /// `value`, or for a branch where it leads and when.
    form: String,
    instruction: String,
    function: String,
    place: String,
}

/// What a file holds.
#[derive(Debug, Serialize)]
struct Contents {
    file: String,
    target: String,
    variables: Vec<String>,
    sites: Vec<Shown>,
}

pub(crate) fn inspect(
    path: &Path,
    verify: bool,
    diff: Option<u32>,
    json: bool,
) -> Result<(), Failure> {
    let file = path.display().to_string();
    let unusable = |why: String| Failure::Arguments(format!("cannot inspect {file}: {why}"));
    let bytes = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
    let image = Image::parse(&bytes).map_err(unusable)?;
    let tables = Tables::read(&image).map_err(unusable)?;
    if let Some(pid) = diff {
        let differences = diff::differences(path, &image, &tables, pid)?;
        return report::differences(&file, pid, tables.sites.len(), &differences, json);
    }
    if verify {
        let faults = check::faults(&image, &tables);
        return report::faults(&file, &tables, &faults, json);
    }
    let source = Source::open(path);
    let show = |site: &Site| {
        let (function, place) = source.find(site.address);
        Shown {
            variable: site.variable.clone(),
            address: site.address,
            form: form(&image, site),
            instruction: code::show(&image, site.address).unwrap_or_else(|why| format!("({why})")),
            function,
            place,
        }
    };
    let contents = Contents {
        target: image.target(),
        variables: tables.variables.iter().map(|one| one.name.clone()).collect(),
        sites: tables.sites.iter().map(show).collect(),
        file,
    };
    if json {
        return output::json(&contents);
    }
    report::contents(&contents)
}

fn form(image: &Image<'_>, site: &Site) -> String {
    match &site.form {
        Form::Value => "value".into(),
        Form::Branch { target, taken_on, test } => {
            let test = match test {
                tables::Test::Plain => format!("{taken_on}"),
                tables::Test::Comparison { symbol, constant } => {
                    format!("{symbol} {constant:#x} is {taken_on}")
                }
                tables::Test::Function(address) => {
                    let name = image.name(*address);
                    format!("{} is {taken_on}", name.unwrap_or_else(|| format!("{address:#x}")))
                }
            };
            format!("branch to {target:#x} when {test}")
        }
    }
}
