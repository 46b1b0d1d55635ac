//! Under valgrind, which runs a translation of the code and looks at the code again only when it is told
//! to (`--smc-check=all`). What would go wrong: a set that returns `Ok` while every thread goes on with
//! the old value.

use std::process::Command;

use immediate::{Immediate, immediate, immediate_if};
use immediate_tests::has_sites;

#[path = "environment/mod.rs"]
mod environment;

use environment::{among_readers, assert_all, set, sets};

immediate_tests::scenarios!(sees_changes, sees_no_changes);

/// Tested by a closure: only the start of the program can bring that up to date, in text that nobody has
/// run yet and that is translated as it is then.
#[immediate]
static BITS: Immediate<u8> = Immediate::new(2);

fn is_brought_up() -> bool {
    immediate_if!(BITS, |bits| bits & 2 != 0)
}

fn sees_changes() {
    assert!(is_brought_up());
    let went = among_readers(1, || sets(&mut 0, 20));
    assert_eq!(went.refused, 0);
    println!("every set was seen");
}

fn sees_no_changes() {
    assert!(is_brought_up());
    assert_all(0);
    let error = set(1).expect_err("what is stored is not executed");
    println!("refused: {error}");
    let status = immediate::status();
    assert_eq!(status.refusal, Some(error));
    assert_all(0);
}

/// Runs a scenario under valgrind; `None`, and a line, where it is not installed.
fn valgrind(scenario: &str, arguments: &[&str], protocol: &str) -> Option<String> {
    let output = Command::new("valgrind")
        .args(["-q", "--tool=none"])
        .args(arguments)
        .arg(std::env::current_exe().expect("the path of this program"))
        .env("IMMEDIATE_TEST_SCENARIO", scenario)
        .env("IMMEDIATE_PROTOCOL", protocol)
        .output();
    let Ok(output) = output else {
        println!("skipped: valgrind is not installed");
        return None;
    };
    let [out, err] =
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    assert_eq!(output.status.code(), Some(0), "{scenario} {protocol}\n{out}{err}");
    Some(out)
}

#[test]
fn with_its_flag_every_set_is_seen() {
    if !has_sites() {
        return;
    }
    // Not `stop-world`: valgrind blocks every signal of a thread while it runs the thread's code.
    for protocol in ["", "int3", "quadword"] {
        let flag = ["--smc-check=all"];
        let Some(out) = valgrind("sees_changes", &flag, protocol) else { return };
        assert!(out.contains("every set was seen"), "{out}");
        println!("{out}");
    }
}

#[test]
fn without_its_flag_a_set_is_refused_and_says_what_is_missing() {
    if !has_sites() {
        return;
    }
    let Some(out) = valgrind("sees_no_changes", &[], "") else { return };
    assert!(out.contains("valgrind needs --smc-check=all"), "{out}");
}
