//! `--diff`: a file against the memory of a process that has loaded it.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use immediate_arch::isa::x86_64::{Instruction, LONGEST, decode};
use object::Architecture;
use serde::Serialize;

use super::code;
use super::image::Image;
use super::tables::{Form, Site, Tables, Test};
use crate::failure::Failure;

/// A site that differs.
#[derive(Debug, Serialize)]
pub(super) struct Difference {
    pub(super) variable: String,
    /// Address in the file.
    pub(super) address: u64,
    /// Address in the process.
    pub(super) loaded: u64,
    pub(super) file: String,
    pub(super) process: String,
    pub(super) why: String,
}

pub(super) fn differences(
    path: &Path,
    image: &Image<'_>,
    tables: &Tables,
    pid: u32,
) -> Result<Vec<Difference>, Failure> {
    let base = load_base(path, image, pid)?;
    let memory = format!("/proc/{pid}/mem");
    let cannot = |error: std::io::Error| {
        Failure::Program(format!("cannot read the memory of process {pid}: {error}"))
    };
    let memory = File::open(memory).map_err(cannot)?;
    let mut list = Vec::new();
    for site in &tables.sites {
        let Some(before) = image.code(site.address, LONGEST) else { continue };
        let loaded = site.address.wrapping_add(base);
        let mut now = vec![0; before.len()];
        memory.read_exact_at(&mut now, loaded).map_err(cannot)?;
        let length = length(image, before);
        if now[..length] == before[..length] {
            continue;
        }
        let show = |bytes: &[u8]| {
            code::text(image, bytes, site.address).unwrap_or_else(|_| format!("{bytes:02x?}"))
        };
        list.push(Difference {
            variable: site.variable.clone(),
            address: site.address,
            loaded,
            file: show(before),
            process: show(&now),
            why: why(image, site, before, &now),
        });
    }
    Ok(list)
}

/// Bytes of the site's instruction.
fn length(image: &Image<'_>, code: &[u8]) -> usize {
    let whole = match image.architecture {
        Architecture::X86_64 => decode(code).map_or(5, |found| found.length()),
        Architecture::I386 => 5,
        _ => 4,
    };
    whole.min(code.len())
}

fn why(image: &Image<'_>, site: &Site, before: &[u8], now: &[u8]) -> String {
    if image.architecture != Architecture::X86_64 {
        return "the variable was set".into();
    }
    match (decode(before), decode(now), &site.form) {
        (
            Some(Instruction::Move { register: a, bits: old, .. }),
            Some(Instruction::Move { register: b, bits: new, .. }),
            Form::Value,
        ) if a == b => format!("the variable was set from {old} ({old:#x}) to {new} ({new:#x})"),
        (
            Some(Instruction::Nop | Instruction::Jump { .. }),
            Some(now @ (Instruction::Nop | Instruction::Jump { .. })),
            Form::Branch { taken_on, test, .. },
        ) => {
            let is_taken = matches!(now, Instruction::Jump { .. });
            let outcome = is_taken == *taken_on;
            match test {
                Test::Plain => format!("the variable was set to {outcome}"),
                Test::Comparison { symbol, constant } => {
                    format!("the variable was set: {symbol} {constant:#x} is {outcome} now")
                }
                Test::Function(_) => format!("its test is {outcome} for the value that it has"),
            }
        }
        (_, None, _) if now.first() == Some(&0xcc) => {
            "a trap stands there: a set is under way, or a debugger's breakpoint".into()
        }
        _ => "something else has changed the code".into(),
    }
}

/// What the process added to the addresses in the file.
fn load_base(path: &Path, image: &Image<'_>, pid: u32) -> Result<u64, Failure> {
    let own = fs::metadata(path).map_err(|error| {
        Failure::Arguments(format!("cannot inspect {}: {error}", path.display()))
    })?;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(|error| {
        Failure::Program(format!("cannot read what process {pid} has loaded: {error}"))
    })?;
    let page = 0xfff;
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (Some(range), Some(_), Some(offset), Some(_), Some(inode)) =
            (words.next(), words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let file = words.collect::<Vec<_>>().join(" ");
        // The device in the list is that of the file system below an overlay, so it says nothing.
        let is_same = inode.parse() == Ok(own.ino())
            && fs::metadata(&file)
                .is_ok_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino()));
        let start = range.split('-').next().and_then(|text| u64::from_str_radix(text, 16).ok());
        let (Some(start), Ok(offset)) = (start, u64::from_str_radix(offset, 16)) else { continue };
        let segment = image.segments.iter().find(|segment| segment.offset & !page == offset);
        if let (true, Some(segment)) = (is_same, segment) {
            return Ok(start.wrapping_sub(segment.address & !page));
        }
    }
    Err(Failure::Arguments(format!(
        "process {pid} has not loaded {}; name a file that it runs, one of those in /proc/{pid}/maps",
        path.display()
    )))
}
