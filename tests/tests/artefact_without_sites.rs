//! CASE 19 (mold #19): no sites at all in the program; variables without sites; no variables.
//!
//! What would go wrong: the bounds of a table that nobody writes are undefined symbols, and the program
//! does not link; or an empty table is taken for a broken one.

#[path = "../fixtures/support/mod.rs"]
mod support;

use std::process::Command;

use support::{Build, Image, Linker, fixture, has_sites};

#[test]
fn a_program_without_sites_links_lists_and_sets() {
    if !has_sites() {
        return;
    }
    for linker in Linker::ALL.into_iter().filter(|linker| linker.is_installed()) {
        let garbage = match linker {
            Linker::Gold => "-Wl,--gc-sections",
            _ => "-Wl,--gc-sections,-z,start-stop-gc",
        };
        for source in ["without_sites.rs", "without_variables.rs"] {
            for flags in ["-Copt-level=3", garbage] {
                let case = format!("without/{linker:?} {flags}");
                let program = Build::new(&case, &fixture(source)).linker(linker).flags(flags);
                let program = program.build().expect("links");
                let output = support::run(&mut Command::new(&program)).expect("runs");
                assert_eq!(output, "checked\n");
                let image = Image::read(&program);
                support::check(&image);
                assert!(image.records.is_empty());
                // Whoever has no variable has no tables either.
                assert_eq!(image.table_bytes.is_empty(), source == "without_variables.rs");
            }
        }
    }
}
