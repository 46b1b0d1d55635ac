//! `--verify`: is each site what its record says, and is none left out?

use iced_x86::{Decoder, DecoderOptions};
use immediate_arch::isa::x86_64::{Instruction, LONGEST, NOP, decode};
use object::Architecture;
use std::collections::{BTreeMap, HashSet};

use super::code;
use super::image::Image;
use super::tables::{Form, Site, Tables};

/// What is wrong with a file, a line each.
pub(super) fn faults(image: &Image<'_>, tables: &Tables) -> Vec<String> {
    let mut faults = tables.broken.clone();
    let mut seen: BTreeMap<u64, &Site> = BTreeMap::new();
    for site in &tables.sites {
        if let Err(why) = check(image, site) {
            faults.push(told(site, &why));
        }
        match seen.insert(site.address, site) {
            Some(other) if other.variable != site.variable => faults.push(told(
                site,
                &format!("it also reads {}: the linker folded two functions", other.variable),
            )),
            _ => {}
        }
    }
    if image.architecture == Architecture::X86_64 {
        faults.extend(left_out(image, tables));
    }
    faults
}

fn told(site: &Site, why: &str) -> String {
    format!("{:#x}, {} ({}): {why}", site.address, site.variable, site.record)
}

fn check(image: &Image<'_>, site: &Site) -> Result<(), String> {
    let code = image.code(site.address, LONGEST).ok_or("it is not in the code of the file")?;
    if let Form::Branch { target, .. } = site.form
        && image.code(target, 1).is_none()
    {
        return Err(format!("its branch leads to {target:#x}, which is not in the code"));
    }
    if image.architecture != Architecture::X86_64 {
        return code::text(image, code, site.address).map(|_| ());
    }
    let found = decode(code).ok_or_else(|| {
        let found = code::text(image, code, site.address);
        format!("there stands {}, which is no site", found.unwrap_or_else(|why| why))
    })?;
    let instruction = || code::text(image, code, site.address).unwrap_or_else(|why| why);
    match (&site.form, found) {
        (Form::Value, Instruction::Move { field, width, .. }) => {
            is_one_word(site.address + u64::from(field), width.into())
        }
        (Form::Branch { .. }, Instruction::Nop) => is_one_word(site.address, NOP.len() as u64),
        (Form::Branch { target, .. }, Instruction::Jump { displacement }) => {
            let next = site.address.wrapping_add(NOP.len() as u64);
            let leads = next.wrapping_add_signed(displacement.into());
            if leads != *target {
                return Err(format!("the jump leads to {leads:#x}, its record says {target:#x}"));
            }
            is_one_word(site.address, NOP.len() as u64)
        }
        (Form::Value, _) => Err(format!("there stands {}, its record says mov", instruction())),
        (Form::Branch { .. }, _) => {
            Err(format!("there stands {}, its record says nop or jmp", instruction()))
        }
    }
}

/// What changes must lie in one aligned word, to be changed by one store.
fn is_one_word(start: u64, length: u64) -> Result<(), String> {
    if start / 8 == (start + length - 1) / 8 {
        return Ok(());
    }
    Err("its bytes are not inside one aligned word of eight bytes".into())
}

/// Instructions that look like branch sites, in functions that have sites, and have no record: the
/// five-byte `nop` that is no padding before an aligned address.
fn left_out(image: &Image<'_>, tables: &Tables) -> Vec<String> {
    let known: HashSet<u64> = tables.sites.iter().map(|site| site.address).collect();
    let mut faults = Vec::new();
    for section in image.sections.iter().filter(|section| section.is_code) {
        let mut decoder = Decoder::with_ip(64, section.data, section.address, DecoderOptions::NONE);
        while decoder.can_decode() {
            let instruction = decoder.decode();
            let address = instruction.ip();
            let from = usize::try_from(address.wrapping_sub(section.address)).unwrap_or(usize::MAX);
            let is_nop = section.data.get(from..).is_some_and(|rest| rest.starts_with(&NOP));
            let end = instruction.next_ip();
            let is_padding = end.is_multiple_of(8) || section.data.len() == from + NOP.len();
            if is_nop
                && !is_padding
                && is_one_word(address, NOP.len() as u64).is_ok()
                && !known.contains(&address)
            {
                faults.push(format!(
                    "{address:#x}: a nop of the form of a branch site, without a record"
                ));
            }
        }
    }
    faults
}
