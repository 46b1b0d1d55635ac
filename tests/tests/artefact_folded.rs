//! CASE 22 (llvm #57693): `--icf=all` merges functions whose bytes are equal, and functions that read
//! different variables with equal defaults have equal bytes.
//!
//! What would go wrong: one function left of two, so that a set of one variable changes what reads the
//! other; or, of two tests of one variable, one that is never decided again. Two branches for opposite
//! outcomes of one test (`likely` and not) are built as the same nop, and were folded.

#[path = "../fixtures/support/mod.rs"]
mod support;

use std::process::Command;

use support::{Image, Linker, build_program, fixture, has_sites};

#[test]
fn functions_of_one_shape_stay_independent() {
    if !has_sites() {
        return;
    }
    let mut failures = Vec::new();
    for linker in [Linker::Default, Linker::Lld, Linker::Gold, Linker::Mold] {
        if !linker.is_installed() {
            continue;
        }
        for code in ["-Copt-level=3 -Ccodegen-units=16", "-Copt-level=s -Ccodegen-units=1"] {
            let case = format!("folded/{linker:?} {code}");
            let program =
                build_program(&case, &fixture("folding.rs"), linker, code, "-Wl,--icf=all")
                    .expect("links");
            let image = Image::read(&program);
            support::check(&image);
            match support::run(&mut Command::new(&program)) {
                // Where nothing is folded this test shows nothing.
                Ok(output) => assert_eq!(output, "folded\n", "{case}"),
                Err(error) => failures.push(error),
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
