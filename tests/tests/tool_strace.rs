//! Under `strace -f`: every call and every signal of every thread stops twice. What would go wrong: a
//! trap that the tracer does not pass on, or bounds that a program so slow does not keep.

use std::process::Command;

use immediate_tests::has_sites;

/// Runs the torture program under strace; `None`, and a line, where that cannot be done.
fn strace(arguments: &[&str]) -> Option<String> {
    let output = Command::new("strace")
        .args(["-f", "-o", "/dev/null", env!("CARGO_BIN_EXE_torture")])
        .args(["--seconds", "2", "--threads", "1"])
        .args(arguments)
        .output();
    let Ok(output) = output else {
        println!("skipped: strace is not installed");
        return None;
    };
    let [out, err] =
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    if err.contains("Operation not permitted") {
        println!("skipped: strace may not trace here");
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{arguments:?}\n{out}{err}");
    assert!(out.contains("violations 0"), "{out}{err}");
    Some(out)
}

#[test]
fn a_traced_program_sets_by_every_protocol() {
    if !has_sites() {
        return;
    }
    for protocol in ["int3", "quadword", "stop-world"] {
        let Some(out) = strace(&["--protocol", protocol]) else { return };
        assert!(out.contains(&format!("by {protocol} and ")), "{out}");
    }
}

/// It cannot be told from a debugger, which would keep the traps.
#[test]
fn without_being_asked_it_uses_no_traps() {
    if !has_sites() {
        return;
    }
    let Some(out) = strace(&[]) else { return };
    assert!(!out.contains("by int3 and "), "{out}");
}
