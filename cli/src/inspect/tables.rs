//! The records in a file; their layout is written by the templates in `immediate-arch` and read at run
//! time by `immediate::record`.

use super::image::{Image, Reference, Section};

/// The layout of records that this command reads.
const LAYOUT: u32 = 1;

/// A variable that the file declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) name: String,
}

/// What decides whether a branch is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Test {
    Plain,
    Comparison { symbol: &'static str, constant: u64 },
    Function(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Value,
    Branch { target: u64, taken_on: bool, test: Test },
}

/// A site, by its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Site {
    pub(super) address: u64,
    pub(super) variable: String,
    pub(super) form: Form,
    /// The table and the place in it, for messages.
    pub(super) record: String,
}

/// All records of a file.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) variables: Vec<Variable>,
    /// By variable, then by address.
    pub(super) sites: Vec<Site>,
    /// Records that cannot be read, a line each.
    pub(super) broken: Vec<String>,
}

/// Name and size of the records of each table.
const KINDS: [(&str, u64); 4] =
    [("variables", 4), ("sites", 12), ("comparisons", 24), ("tests", 16)];
const OPERATORS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];

impl Tables {
    pub(super) fn read(image: &Image<'_>) -> Result<Self, String> {
        let mut tables = Tables::default();
        let mut found = false;
        for section in &image.sections {
            let Some((kind, version)) = kind(&section.name) else { continue };
            found = true;
            check_layout(image, version)?;
            tables.section(image, section, kind)?;
            tables.check_bounds(image, section, version);
        }
        if !found {
            return Err(match image.sections.is_empty() {
                true => "it has no section headers, by which the records are found".into(),
                false => "it has no immediate variables and no sites".into(),
            });
        }
        tables.variables.sort_by(|one, other| one.name.cmp(&other.name));
        tables.sites.sort_by(|one, other| {
            (&one.variable, one.address).cmp(&(&other.variable, other.address))
        });
        Ok(tables)
    }

    fn section(
        &mut self,
        image: &Image<'_>,
        section: &Section<'_>,
        kind: usize,
    ) -> Result<(), String> {
        let (name, size) = KINDS[kind];
        let bytes = section.data.len() as u64;
        if !bytes.is_multiple_of(size) {
            return Err(format!(
                "its table of {name} has {bytes} bytes, which is no whole number of records of {size} \
                 bytes"
            ));
        }
        for index in 0..bytes / size {
            let Some(address) = section.address.checked_add(index * size) else { break };
            let record = format!("record {index} of {name}");
            let read = if kind == 0 {
                variable(image, address).map(|name| {
                    self.variables.extend(name.map(|name| Variable { name }));
                })
            } else {
                site(image, address, kind, &record).map(|site| self.sites.extend(site))
            };
            if let Err(why) = read {
                self.broken.push(format!("{record}: {why}"));
            }
        }
        Ok(())
    }

    /// What the runtime will read begins and ends where the section does, so that it misses nothing.
    fn check_bounds(&mut self, image: &Image<'_>, section: &Section<'_>, version: &str) {
        let (kind, _) = kind(&section.name).unwrap_or_default();
        // Layout, size, then a pair of distances a table.
        let Some(header) = image.symbol(&format!("__immediate_header_{version}")) else { return };
        let end = section.address.wrapping_add(section.data.len() as u64);
        for (offset, expected) in [(8, section.address), (12, end)] {
            let field = header.wrapping_add(offset + 8 * kind as u64);
            let found = image.number(field).map(|distance| resolve(field, distance));
            if found != Some(expected) {
                let found = found.map_or("nowhere".into(), |found| format!("{found:#x}"));
                self.broken.push(format!(
                    "the header says that a bound of {} is {found}, it is {expected:#x}: the runtime \
                     would miss records",
                    section.name
                ));
            }
        }
    }
}

/// The table's number and the version in the name of a section.
fn kind(section: &str) -> Option<(usize, &str)> {
    let rest = section.strip_prefix("immediate_")?;
    let (kind, version) = rest.split_once('_')?;
    let place = KINDS.iter().position(|(name, _)| *name == kind)?;
    Some((place, version))
}

fn check_layout(image: &Image<'_>, version: &str) -> Result<(), String> {
    // A stripped file does not say where its header is.
    let header = image.symbol(&format!("__immediate_header_{version}"));
    match header.and_then(|header| image.number(header)) {
        Some(layout) if layout != LAYOUT => Err(format!(
            "its records have layout {layout}, this command reads layout {LAYOUT}; use the command \
             of the version {}",
            version.replace('_', ".")
        )),
        _ => Ok(()),
    }
}

/// The address that lies a signed distance from a field.
fn resolve(field: u64, distance: u32) -> u64 {
    field.wrapping_add_signed(i64::from(distance.cast_signed()))
}

/// The variable that a record at `field` refers to and the kind of the site; none for the zeros that
/// begin every table.
fn reference(image: &Image<'_>, field: u64) -> Result<Option<(String, u32)>, String> {
    let distance = image.number(field).ok_or("it is not in the file")?;
    if distance == 0 {
        return Ok(None);
    }
    let slot = resolve(field, distance) & !3;
    if !slot.is_multiple_of(image.width()) {
        return Err(format!("its variable is at {slot:#x}, which is no slot of an address"));
    }
    let name = match image.follow(slot).ok_or("its variable is not in the file")? {
        Reference::Symbol(name) => name,
        Reference::Address(address) if image.bytes(address, 1).is_none() => {
            return Err(format!("its variable would be at {address:#x}, outside the file"));
        }
        Reference::Address(address) => {
            let name = declared_name(image, address).or_else(|| image.name(address));
            name.unwrap_or_else(|| format!("variable at {address:#x}"))
        }
    };
    Ok(Some((name, distance & 3)))
}

/// The longest name that is believed.
const LONGEST_NAME: u64 = 4096;

/// The name in the description of a variable (`immediate::descriptor`), also in a stripped file.
fn declared_name(image: &Image<'_>, variable: u64) -> Option<String> {
    let address = |field: u64| match image.follow(field)? {
        Reference::Address(address) => Some(address),
        Reference::Symbol(_) => None,
    };
    let description = address(variable)?;
    let size = image.number(description.checked_add(4)?)?;
    if !matches!(size, 1 | 2 | 4 | 8 | 16) {
        return None;
    }
    // Kind, size, flags, line and column, then the name as address and length.
    let name = description.checked_add(20)?.next_multiple_of(image.width());
    let length = address(name.checked_add(image.width())?).filter(|one| *one <= LONGEST_NAME)?;
    let bytes = image.bytes(address(name)?, length as usize)?;
    let name = std::str::from_utf8(bytes).ok().filter(|name| name.len() as u64 == length)?;
    Some(name.to_string()).filter(|name| !name.is_empty())
}

fn variable(image: &Image<'_>, address: u64) -> Result<Option<String>, String> {
    Ok(reference(image, address)?.map(|(name, _)| name))
}

fn site(
    image: &Image<'_>,
    address: u64,
    kind: usize,
    record: &str,
) -> Result<Option<Site>, String> {
    let field = |offset: u64| {
        let field = address.wrapping_add(offset);
        image.number(field).map(|distance| resolve(field, distance)).ok_or("it is not in the file")
    };
    let Some((variable, site)) = reference(image, address.wrapping_add(4))? else {
        return Ok(None);
    };
    let test = match kind {
        1 => Test::Plain,
        2 => {
            let number = image.number(address.wrapping_add(12)).ok_or("it is not in the file")?;
            let symbol = OPERATORS
                .get(number as usize)
                .ok_or_else(|| format!("there is no comparison with number {number}"))?;
            let constant = image.long(address.wrapping_add(16)).ok_or("it is not in the file")?;
            Test::Comparison { symbol, constant }
        }
        _ => Test::Function(field(12)?),
    };
    let form = match site {
        0 if kind == 1 => Form::Value,
        1 | 2 => Form::Branch { target: field(8)?, taken_on: site == 1, test },
        other => return Err(format!("there is no site of kind {other}")),
    };
    Ok(Some(Site { address: field(0)?, variable, form, record: record.to_string() }))
}
