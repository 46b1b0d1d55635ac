//! The main job as a person runs it: that it verifies its own counts and prints its table, by every
//! protocol, and that a file that cannot be used gives one line and exit status 2. Were a count
//! wrong, an update not seen or the table broken, the first tests would fail.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

fn hot_path(arguments: &[&str], protocol: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hot_path"));
    command.args(arguments).env_remove("IMMEDIATE").env_remove("IMMEDIATE_PROTOCOL");
    command.envs(protocol.map(|protocol| ("IMMEDIATE_PROTOCOL", protocol)));
    command.output().expect("the program starts")
}

/// A new file in the directory of these tests.
fn file(name: &str, content: &[u8]) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, content).expect("the directory of the tests can be written");
    path.to_str().expect("its path is UTF-8").to_string()
}

/// The report, after a look at what every report holds.
fn report(arguments: &[&str], protocol: Option<&str>) -> String {
    let output = hot_path(arguments, protocol);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    assert_eq!(err, "");
    assert!(out.lines().all(|line| line.chars().count() <= 100), "too wide:\n{out}");
    for (row, times) in [
        ("  compiled out ", 1),
        ("  compiled in ", 1),
        ("  immediates ", 3),
        ("  atomics ", 3),
        ("switches off", 1),
        ("switches on", 1),
        ("switches flipped", 1),
        ("noise ", 1),
        ("protocol ", 1),
        ("verified ", 1),
    ] {
        let found = out.lines().filter(|line| line.starts_with(row)).count();
        assert_eq!(found, times, "rows that begin with {row:?} in\n{out}");
    }
    for row in out.lines().filter(|row| row.starts_with("  ") && row.contains(" ± ")) {
        let rate: f64 = row
            .split_whitespace()
            .find_map(|word| word.parse().ok())
            .unwrap_or_else(|| panic!("no rate in {row:?}"));
        assert!(rate > 0.0, "{row:?}");
    }
    let flipped = out.lines().skip_while(|line| *line != "switches flipped").skip(1).take(2);
    for row in flipped {
        assert!(row.ends_with(" µs") || row.ends_with(" ms"), "no updates in {row:?}");
    }
    out
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the output is UTF-8")
}

fn refused(argument: &str, why: &str) {
    let output = hot_path(&[argument, "--seconds", "1"], None);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(2), "{out}{err}");
    assert_eq!(out, "");
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.starts_with("hot_path: cannot read ") && err.contains(why), "{err}");
    assert!(err.contains("; name "), "does not say what would be right: {err}");
}

#[test]
fn sample_text() {
    let report = report(&["--seconds", "1"], None);
    assert!(report.contains("the sample text: "), "{report}");
    if immediate::status().target == "plain" {
        println!("skipped: sites, of which this build has none");
        assert!(report.contains("plain loads"), "{report}");
    } else {
        assert!(report.contains("\npatched    "), "{report}");
    }
}

#[test]
fn protocol_quadword() {
    let report = report(&["--seconds", "1", "--threads", "3"], Some("quadword"));
    if immediate::status().target == "plain" {
        println!("skipped: protocols, which this build does not need");
    } else {
        assert!(report.contains("quadword by "), "{report}");
    }
}

#[test]
fn bytes_that_are_not_text() {
    // No line ends, no UTF-8, one word that is longer than any key.
    let all: Vec<u8> = (0..=255).filter(|byte| *byte != b'\n').cycle().take(3000).collect();
    let file = file("bytes", &all);
    let other = self::file("words", b"the tide\n\nxnovember November NOVEMBER");
    report(&["--seconds", "0.2", "--threads", "1", &file, &other], None);
}

#[test]
fn missing_file() {
    refused("no such file", "No such file");
}

#[test]
fn directory() {
    refused(env!("CARGO_TARGET_TMPDIR"), "it is a directory");
}

#[test]
fn empty_file() {
    refused(&file("empty", b""), "it is empty");
}

#[test]
fn name_with_line_end() {
    refused("no such\nfile", "No such file");
}
