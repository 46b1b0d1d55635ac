//! CASE 16 (linkme #22): shared objects under every linker: a cdylib that a program without us loads,
//! and a Rust dylib whose variable the executable reads.
//!
//! What would go wrong: a table that reaches for another module's bounds, a reference to a variable
//! that only works inside one file (GNU ld: "unresolvable R_X86_64_NONE relocation" against a variable
//! of another object), a text relocation, which the loader of a hardened system refuses.

#[path = "../fixtures/support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use support::{Build, Image, Linker, fixture, has_sites};

fn recorded(image: &Image) -> BTreeSet<(u64, u64)> {
    image.records.iter().map(|record| (record.address, record.target)).collect()
}

#[test]
fn a_cdylib_sets_its_own_variables_in_a_host_without_us() {
    if !has_sites() {
        return;
    }
    let host = Build::new("shared/host", &fixture("host.rs")).build().expect("builds");
    for linker in Linker::ALL.into_iter().filter(|linker| linker.is_installed()) {
        for flags in ["-Copt-level=3", "-Copt-level=0 -Wl,--gc-sections,-z,now"] {
            let case = format!("shared/{linker:?} {flags}");
            let build = Build::new(&case, &fixture("plugin.rs")).crate_type("cdylib");
            let plugin = build.linker(linker).flags(flags).build().expect("links");
            let image = Image::read(&plugin);
            support::check(&image);
            assert!(image.records.len() >= 6, "{case}: {} sites", image.records.len());
            let output = support::run(Command::new(&host).arg(&plugin)).expect("runs");
            assert!(output.ends_with("checked\n"), "{case}: {output}");
            assert_eq!(support::printed_sites(&output), recorded(&image), "{case}");
        }
    }
}

#[test]
fn a_program_reads_the_variables_of_a_rust_dylib() {
    if !has_sites() {
        return;
    }
    let standard = support::run(Command::new("rustc").args(["--print", "target-libdir"]));
    let standard = PathBuf::from(standard.expect("rustc").trim());
    for linker in Linker::ALL.into_iter().filter(|linker| linker.is_installed()) {
        for code in ["-Copt-level=3", "-Copt-level=0"] {
            let case = format!("dynamic/{linker:?} {code}");
            let flags = format!("{code} -Cprefer-dynamic");
            let build = |name: &str| Build::new(&case, &fixture(name)).linker(linker).flags(&flags);
            let library = build("library.rs").crate_type("dylib").build().expect("links");
            let program = build("user.rs").uses(&library).build().expect("links");
            let path = std::env::join_paths([library.parent().unwrap(), &standard]).unwrap();
            let output = support::run(Command::new(&program).env("LD_LIBRARY_PATH", path));
            let output = output.expect("runs");
            assert!(output.ends_with("checked\n"), "{case}: {output}");
            let image = Image::read(&program);
            support::check(&image);
            support::check(&Image::read(&library));
            assert_eq!(support::printed_sites(&output), recorded(&image), "{case}");
        }
    }
}
