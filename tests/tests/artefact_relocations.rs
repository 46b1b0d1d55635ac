//! DESIGN section 4: no dynamic relocation per site, and a record of 12 bytes.
//!
//! What would go wrong: an address in a record, which the dynamic loader has to correct at every start
//! of the program: 24 bytes of relocation and a written page for what should be read-only.

#[path = "../fixtures/support/mod.rs"]
mod support;

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use support::{Build, Image, Linker, has_sites};

/// A library in which `count` functions have three sites each: a value, a branch, a test.
fn library(count: usize) -> PathBuf {
    let mut text = String::from(
        "use immediate::{Immediate, immediate, immediate_if, immediate_read};
        #[immediate] static LIMIT: Immediate<u32> = Immediate::new(0x5eed);
        #[immediate] static TRACE: Immediate<bool> = Immediate::new(false);
        #[immediate] static MASK: Immediate<u8> = Immediate::new(0);
        fn number() -> u32 { std::env::args().count() as u32 }\n",
    );
    for n in 0..count {
        // They differ in more than their name: LLVM merges equal ones, and with them their sites.
        writeln!(
            text,
            "#[inline(never)] fn f{n}(x: u32) -> u32 {{
                let mut y = x ^ immediate_read!(LIMIT);
                if immediate_if!(TRACE) {{ y = number() + {n}; }}
                if immediate_if!(MASK, |mask| mask & 4 != 0) {{ y += number() * {n}; }}
                y + {n}
            }}"
        )
        .unwrap();
    }
    text.push_str("pub fn all() -> u32 { let mut x = number();\n");
    for n in 0..count {
        writeln!(text, "x = f{n}(x);").unwrap();
    }
    text.push_str("x }");
    // Compiled once for all linkers, with little optimisation: this is about links.
    let build = Build::new("relocations", &write(&format!("sites_{count}.rs"), &text));
    let build = build.crate_type("lib").flags("-Copt-level=1 -Ccodegen-units=4");
    build.build().expect("compiles")
}

fn write(name: &str, text: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("artefacts/relocations");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn more_sites_are_no_more_relocations() {
    if !has_sites() {
        return;
    }
    let libraries = [10, 1000].map(|count| (count, library(count)));
    for linker in Linker::ALL.into_iter().filter(|linker| linker.is_installed()) {
        let [few, many] = libraries.each_ref().map(|(count, library)| {
            let text = format!(
                "fn main() {{ std::hint::black_box(sites_{count}::all());
                    assert_eq!(immediate::sites().count(), 3 * {count}); }}"
            );
            let source = write(&format!("main_{count}.rs"), &text);
            let build = Build::new(&format!("relocations/{linker:?}"), &source).linker(linker);
            let program = build.uses(library).build().expect("links");
            support::run(&mut Command::new(&program)).expect("runs");
            let image = Image::read(&program);
            support::check(&image);
            assert_eq!(image.records.len(), 3 * count);
            // 12 bytes a site; a test of its own carries four more.
            assert_eq!(image.table_bytes["sites"], 2 * count * 12, "{linker:?}");
            assert_eq!(image.table_bytes["tests"], count * 16, "{linker:?}");
            image
        });
        let [before, after] = [&few, &many].map(|image| image.written_by_the_loader().len());
        let tests = |image: &Image| {
            // The functions that evaluate a test, about which the relocations are.
            image.functions.keys().filter(|name| name.contains("evaluate")).count()
        };
        println!(
            "{linker:?}: {before} relocations with 30 sites, {after} with 3000; {} and {} functions \
             with tests; code {} and {} bytes",
            tests(&few),
            tests(&many),
            few.text_bytes(),
            many.text_bytes(),
        );
        assert!(before > 0, "the relocations of the program are seen");
        assert_eq!(before, after, "{linker:?}");
    }
}
