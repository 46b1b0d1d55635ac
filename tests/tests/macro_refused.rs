//! What the macros refuse, and what they say.
//!
//! Each case below `refused/` has a twin below `accepted/` that differs in what was wrong, so that a
//! macro which refuses everything fails too. The messages are compared as a user sees them: they
//! must say what to write instead.
//!
//! The compiler's own share of a message changes from release to release, so the messages are
//! compared with the release that they were written for. After a change of a macro,
//! `TRYBUILD=overwrite cargo test -p immediate-tests --test macro_refused` writes them anew; read
//! each before it is committed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The release whose messages stand in the `.stderr` files.
const RELEASE: &str = "rustc 1.95.";

fn cases(folder: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let files = std::fs::read_dir(folder).expect("the folder of cases");
    files
        .filter_map(|file| {
            let name = file.expect("an entry of the folder").file_name();
            name.to_str()?.strip_suffix(".rs").map(String::from)
        })
        .collect()
}

#[test]
fn macros_refuse_what_cannot_be_and_say_what_to_write() {
    let refused = cases("refused");
    assert_eq!(refused, cases("accepted"), "each refused case has an accepted twin");
    assert!(!refused.is_empty());

    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(compiler).arg("--version").output().expect("the compiler runs");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();

    let cases = trybuild::TestCases::new();
    cases.pass("tests/accepted/*.rs");
    if !version.starts_with(RELEASE) {
        println!("messages not compared: they are those of {RELEASE}, this is {version}");
    } else if immediate::status().target == "plain" {
        println!("messages not compared: they are those of a build with sites");
    } else {
        cases.compile_fail("tests/refused/*.rs");
    }
}
