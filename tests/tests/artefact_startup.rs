//! Guarantee 6 and DESIGN section 4: at `main` no page of text has been written, and a module has
//! registered before any code of its own that could read a variable.
//!
//! What would go wrong: every process that starts copies pages of text that all could share; or a
//! constructor reads a variable that has not been brought up to date.

#[path = "../fixtures/support/mod.rs"]
mod support;

use std::process::Command;

use object::{Object, ObjectSection};
use support::{Build, Image, Linker, fixture, has_sites};

const MODELS: [(&str, &str); 4] = [
    ("pie", "-Copt-level=3"),
    ("static position", "-Copt-level=3 -Crelocation-model=static"),
    ("static-pie", "-Copt-level=3 -Ctarget-feature=+crt-static"),
    ("static", "-Copt-level=1 -Ctarget-feature=+crt-static -Crelocation-model=static"),
];

#[test]
fn no_page_of_text_has_been_written_at_main() {
    if !has_sites() {
        return;
    }
    for (model, flags) in MODELS {
        let build = Build::new(&format!("startup/{model}"), &fixture("startup.rs")).flags(flags);
        let program = build.build().expect("builds");
        let dirty = support::run(&mut Command::new(&program)).expect("runs");
        println!("{model}: {} kB of text written", dirty.trim());
        assert_eq!(dirty, "0\n", "{model}");
        let image = Image::read(&program);
        support::check(&image);
        assert!(image.records.len() >= 9);
    }
    // An address is known at run time only: the same look then sees a page that has been written.
    let build = Build::new("startup/address", &fixture("startup.rs"));
    let program = build.flags("-Copt-level=3 --cfg address").build().expect("builds");
    let dirty = support::run(&mut Command::new(&program)).expect("runs");
    assert_ne!(dirty, "0\n", "the look at the text sees what is written");
}

#[test]
fn the_module_registers_before_other_constructors_run() {
    if !has_sites() {
        return;
    }
    for linker in Linker::ALL.into_iter().filter(|linker| linker.is_installed()) {
        for (model, flags) in &MODELS[..2] {
            let case = format!("startup/{linker:?} {model}");
            let build = Build::new(&case, &fixture("startup.rs")).linker(linker).flags(flags);
            let program = build.build().expect("builds");
            // The constructors of the program check by themselves what they can read.
            assert_eq!(support::run(&mut Command::new(&program)).expect("runs"), "0\n", "{case}");
            let image = Image::read(&program);
            let constructors = constructors(&image);
            let place = |name: &str| {
                let (address, _) = image.functions[name];
                let mut places = constructors.iter().enumerate().filter(|(_, at)| **at == address);
                places.next().unwrap_or_else(|| panic!("{case}: {name} is a constructor")).0
            };
            assert_eq!(
                constructors.iter().filter(|at| **at == image.functions[enter(&image)].0).count(),
                1,
                "{case}"
            );
            assert_eq!(place(enter(&image)), 0, "{case}: the first of {}", constructors.len());
            assert!(place("constructor") > 0, "{case}");
        }
    }
}

/// The module's own constructor; its name carries the version of the crate.
fn enter(image: &Image) -> &str {
    let mut names = image.functions.keys().filter(|name| name.starts_with("__immediate_enter_"));
    let name = names.next().expect("a module has its constructor");
    assert!(names.next().is_none(), "one constructor a module");
    name
}

/// The functions in `.init_array`, in their order.
fn constructors(image: &Image) -> Vec<u64> {
    let file = image.file();
    let section = file.section_by_name(".init_array").expect("constructors");
    let data = section.data().expect("an array");
    let relocations = image.dynamic_relocations();
    let mut all = Vec::new();
    for (n, slot) in data.chunks_exact(8).enumerate() {
        let at = section.address() + 8 * n as u64;
        let stored = u64::from_le_bytes(slot.try_into().expect("eight bytes"));
        // In a position-independent file the address is the addend of a relocation.
        let moved = relocations.iter().find(|(place, _)| *place == at);
        all.push(moved.map_or(stored, |(_, addend)| addend.cast_unsigned()));
    }
    all
}
