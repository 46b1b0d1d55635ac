//! A file as the loader would map it: addresses, bytes, names, and what the dynamic linker would put
//! into its slots.

use std::collections::BTreeMap;

use object::{
    Architecture, Endianness, File, Object, ObjectKind, ObjectSection, ObjectSegment, ObjectSymbol,
    RelocationTarget, SectionKind, SegmentFlags,
};

/// Where a word in the file leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reference {
    /// To an address in this file.
    Address(u64),
    /// To a symbol of another module.
    Symbol(String),
}

pub(super) struct Segment<'a> {
    pub(super) address: u64,
    /// Where it begins in the file.
    pub(super) offset: u64,
    pub(super) data: &'a [u8],
    pub(super) is_code: bool,
}

/// A section with its address and its bytes.
pub(super) struct Section<'a> {
    pub(super) name: String,
    pub(super) address: u64,
    pub(super) data: &'a [u8],
    pub(super) is_code: bool,
}

pub(super) struct Image<'a> {
    pub(super) architecture: Architecture,
    pub(super) endianness: Endianness,
    pub(super) is_64: bool,
    pub(super) segments: Vec<Segment<'a>>,
    pub(super) sections: Vec<Section<'a>>,
    names: BTreeMap<u64, String>,
    /// By slot.
    relocated: Vec<(u64, Reference)>,
}

impl<'a> Image<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        if !bytes.starts_with(b"\x7fELF") {
            return Err("it is no ELF file; name a program or a library for Linux".into());
        }
        let file =
            File::parse(bytes).map_err(|error| format!("it is a broken ELF file: {error}"))?;
        if !matches!(file.kind(), ObjectKind::Executable | ObjectKind::Dynamic) {
            return Err("it is not linked; name a program or a shared library".into());
        }
        let broken = |error: object::Error| format!("it is a broken ELF file: {error}");
        let mut segments = Vec::new();
        for segment in file.segments() {
            let is_code = matches!(
                segment.flags(),
                SegmentFlags::Elf { p_flags, .. } if (p_flags & object::elf::PF_X).0 != 0
            );
            let (address, (offset, _)) = (segment.address(), segment.file_range());
            let data = segment.data().map_err(broken)?;
            segments.push(Segment { address, offset, data, is_code });
        }
        let mut sections = Vec::new();
        for section in file.sections().filter(|section| section.address() != 0) {
            let name = section.name().map_err(broken)?.to_string();
            // Zeros that are not in the file are of no use here.
            let data = section.data().unwrap_or(&[]);
            let (address, is_code) = (section.address(), section.kind() == SectionKind::Text);
            sections.push(Section { name, address, data, is_code });
        }
        let mut image = Image {
            architecture: file.architecture(),
            endianness: file.endianness(),
            is_64: file.is_64(),
            segments,
            sections,
            names: names(&file),
            relocated: Vec::new(),
        };
        image.relocated = image.relocations(&file);
        Ok(image)
    }

    fn relocations(&self, file: &File<'_>) -> Vec<(u64, Reference)> {
        let mut list = Vec::new();
        for (slot, relocation) in file.dynamic_relocations().into_iter().flatten() {
            let in_place = || if relocation.has_implicit_addend() { self.word(slot) } else { None };
            let addend = in_place().unwrap_or(relocation.addend().cast_unsigned());
            let symbol = match relocation.target() {
                RelocationTarget::Symbol(index) if index.0 != 0 => {
                    file.dynamic_symbol_table().and_then(|table| {
                        object::ObjectSymbolTable::symbol_by_index(&table, index).ok()
                    })
                }
                _ => None,
            };
            let reference = match symbol {
                Some(symbol) if symbol.is_undefined() => {
                    Reference::Symbol(demangled(symbol.name().unwrap_or("")))
                }
                Some(symbol) => Reference::Address(symbol.address().wrapping_add(addend)),
                None => Reference::Address(addend),
            };
            list.push((slot, reference));
        }
        list.sort_by_key(|(slot, _)| *slot);
        list
    }

    /// The instruction set, as it is shown.
    pub(super) fn target(&self) -> String {
        let bits = if self.is_64 { 64 } else { 32 };
        format!("{:?}, {bits} bits", self.architecture)
    }

    /// The bytes at an address, at most `length`, as far as the file has them.
    pub(super) fn bytes(&self, address: u64, length: usize) -> Option<&'a [u8]> {
        self.segments
            .iter()
            .find_map(|segment| within(segment.data, segment.address, address, length))
    }

    /// As `bytes`, only in code.
    pub(super) fn code(&self, address: u64, length: usize) -> Option<&'a [u8]> {
        let texts = self.segments.iter().filter(|segment| segment.is_code);
        texts.clone().find_map(|text| within(text.data, text.address, address, length))
    }

    /// Four bytes as a number.
    pub(super) fn number(&self, address: u64) -> Option<u32> {
        let bytes = self.bytes(address, 4)?;
        let bytes = bytes.try_into().ok()?;
        Some(match self.endianness {
            Endianness::Little => u32::from_le_bytes(bytes),
            Endianness::Big => u32::from_be_bytes(bytes),
        })
    }

    /// Eight bytes as a number.
    pub(super) fn long(&self, address: u64) -> Option<u64> {
        let bytes = self.bytes(address, 8)?;
        let bytes = bytes.try_into().ok()?;
        Some(match self.endianness {
            Endianness::Little => u64::from_le_bytes(bytes),
            Endianness::Big => u64::from_be_bytes(bytes),
        })
    }

    fn word(&self, address: u64) -> Option<u64> {
        if self.is_64 { self.long(address) } else { self.number(address).map(u64::from) }
    }

    /// Bytes of an address.
    pub(super) fn width(&self) -> u64 {
        if self.is_64 { 8 } else { 4 }
    }

    /// Where the word at an address leads when the file is loaded.
    pub(super) fn follow(&self, slot: u64) -> Option<Reference> {
        match self.relocated.binary_search_by_key(&slot, |(slot, _)| *slot) {
            Ok(place) => Some(self.relocated[place].1.clone()),
            Err(_) => self.word(slot).map(Reference::Address),
        }
    }

    /// The name of what begins at an address.
    pub(super) fn name(&self, address: u64) -> Option<String> {
        self.names.get(&address).cloned()
    }

    /// The address of a symbol.
    pub(super) fn symbol(&self, name: &str) -> Option<u64> {
        self.names.iter().find(|(_, known)| *known == name).map(|(address, _)| *address)
    }
}

fn within(data: &[u8], start: u64, address: u64, length: usize) -> Option<&[u8]> {
    let from = usize::try_from(address.checked_sub(start)?).ok()?;
    let rest = data.get(from..).filter(|rest| !rest.is_empty())?;
    Some(&rest[..length.min(rest.len())])
}

fn names(file: &File<'_>) -> BTreeMap<u64, String> {
    let mut map = BTreeMap::new();
    // Those of the dynamic linker last: they are what is left in a stripped file.
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        if symbol.is_undefined() || symbol.address() == 0 {
            continue;
        }
        if let Ok(name) = symbol.name()
            && !name.is_empty()
        {
            map.entry(symbol.address()).or_insert_with(|| demangled(name));
        }
    }
    map
}

fn demangled(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}
