//! What sites cost in the file and in the compiler: four programs that differ in a thousand checks.

use std::path::Path;
use std::time::Instant;

use object::read::elf::{ElfFile64, SectionHeader};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};

use crate::{Run, turns};

/// Checks in each of the programs.
const CHECKS: f64 = 1_000.0;

/// The sizes of one program.
struct Sizes {
    /// Of the functions with the checks.
    code: f64,
    /// Of what is loaded.
    loaded: f64,
    /// Of the file, with symbols and line tables.
    file: f64,
    /// Of the sites' records.
    records: f64,
    /// Relocations that the loader applies.
    relocations: f64,
}

impl Sizes {
    fn of(program: &Path) -> Self {
        let bytes = std::fs::read(program).expect("the program is built");
        let file = ElfFile64::<object::Endianness>::parse(&*bytes).expect("it is an ELF file");
        let section = |wanted: &str| {
            let mut all = file.sections();
            all.find(|section| section.name() == Ok(wanted)).map_or(0, |section| section.size())
        };
        let hundreds = file
            .symbols()
            .filter(|symbol| symbol.name().is_ok_and(|name| name.contains("hundred")));
        let loaded = file.sections().filter(|section| {
            let flags = section.elf_section_header().sh_flags(object::Endianness::Little);
            flags.contains(object::elf::SHF_ALLOC)
                && section.kind() != SectionKind::UninitializedData
        });
        Sizes {
            code: hundreds.map(|symbol| symbol.size()).sum::<u64>() as f64,
            loaded: loaded.map(|section| section.size()).sum::<u64>() as f64,
            file: bytes.len() as f64,
            records: section("immediate_sites_0_1_0") as f64,
            relocations: section(".rela.dyn") as f64 / 24.0,
        }
    }
}

/// How long cargo takes for one of the programs, from source; each time with another number among
/// its options, so that it does not find the program built.
fn compile(run: &Run<'_>, name: &str, number: u128) -> f64 {
    let mut cargo = run.programs.cargo("rustc");
    cargo.args(["--bin", name, "--", "-C", &format!("metadata={number}")]);
    let start = Instant::now();
    let status = cargo.status().expect("cargo starts");
    assert!(status.success(), "cargo builds {name}");
    start.elapsed().as_secs_f64()
}

pub(crate) fn run(run: &mut Run<'_>, _: f64) {
    let [none, atomic, branch, value] = ["none", "atomic", "branch", "value"]
        .map(|name| Sizes::of(&run.programs.path(&format!("size_{name}"))));
    let each = |with: f64, without: f64| (with - without) / CHECKS;
    let figures = &mut *run.figures;
    figures.add("size.record_bytes", each(branch.records, none.records));
    figures.add("size.code_bytes_branch", each(branch.code, none.code));
    figures.add("size.code_bytes_value4", each(value.code, none.code));
    figures.add("size.code_bytes_atomic", each(atomic.code, none.code));
    figures.add("size.loaded_bytes_branch", each(branch.loaded, none.loaded));
    figures.add("size.loaded_bytes_value4", each(value.loaded, none.loaded));
    figures.add("size.loaded_bytes_atomic", each(atomic.loaded, none.loaded));
    figures.add("size.file_bytes_branch", each(branch.file, none.file));
    figures.add("size.file_bytes_value4", each(value.file, none.file));
    figures.add("size.file_bytes_atomic", each(atomic.file, none.file));
    figures.add("size.relocations_per_site", each(branch.relocations, none.relocations));
    figures.add("size.relocations_program", branch.relocations - none.relocations);

    let now = std::time::SystemTime::now();
    let unique = now.duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_millis());
    let names = ["none", "atomic", "branch"];
    let mut times = Vec::new();
    let rounds = match run.effort {
        crate::Effort::Full => 5,
        crate::Effort::Quick | crate::Effort::Smoke => 1,
    };
    for round in 0..rounds {
        let start = Instant::now();
        for place in turns(round, names.len()) {
            let number = unique + round as u128;
            times.push((names[place], compile(run, &format!("size_{}", names[place]), number)));
        }
        run.bar.inc(start.elapsed().as_millis() as u64);
    }
    for (name, time) in times {
        run.figures.add(format!("compile.{name}_s"), time);
    }
}
