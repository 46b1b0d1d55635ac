//! The torture program, for a short time with each protocol and each writer; and that it can fail.
//!
//! What would go wrong: anything that shows only when sets, forks, signals and threads that come and
//! go meet. That nothing is found means something only because a wrong value is.

use std::process::{Command, Output};

use immediate::{Protocol, Writer};
use immediate_tests::has_sites;

fn torture(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_torture"))
        .args(arguments)
        .output()
        .expect("the program is built along with this test")
}

fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{out}{err}")
}

/// The number behind a word at the beginning of a line.
fn number(text: &str, word: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(word)).unwrap_or_default();
    let digits: String = line.trim().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("no number behind {word:?}:\n{text}"))
}

/// Runs for a while; everything must have happened, and nothing wrong.
fn is_clean(arguments: &[&str]) -> String {
    let all = [&["--seconds", "2.5", "--threads", "3"], arguments].concat();
    let output = torture(&all);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}\n{text}");
    for word in ["reads", "updates", "besides"] {
        assert!(number(&text, word) > 0, "{arguments:?}: nothing of {word}\n{text}");
    }
    assert_eq!(number(&text, "violations"), 0, "{text}");
    let loads_plugins = has_sites() && !text.contains("no plugin is loaded");
    assert!(!loads_plugins || !text.contains(", 0 plugins loaded"), "{text}");
    let (reads, updates) = (number(&text, "reads"), number(&text, "updates"));
    println!("{arguments:?}: {reads} reads, {updates} updates, {} traps", number(&text, "traps"));
    text
}

#[test]
fn nothing_is_violated_by_any_protocol_or_writer() {
    is_clean(&[]);
    if !has_sites() {
        return;
    }
    for protocol in Protocol::CHOICES {
        for writer in Writer::ALL {
            // Not possible: `procmem` does not store a word at once.
            if (*protocol, *writer) == (Protocol::Quadword, Writer::Procmem) {
                continue;
            }
            let way = ["--protocol", protocol.name(), "--writer", writer.name()];
            let text = is_clean(&way);
            let expected = format!("by {protocol} and {writer}");
            assert!(text.contains(&expected), "{expected}:\n{text}");
            // Told by what a handler leaves on its stack, which is known there only.
            if *protocol != Protocol::Quadword && cfg!(target_arch = "x86_64") {
                assert!(number(&text, "traps") > 0, "nobody was trapped or stopped:\n{text}");
            }
        }
    }
}

#[test]
fn a_wrong_value_is_seen_and_named() {
    for (wrong, what) in [
        ("mixture", "violation: a mixture of two values: "),
        ("older", "violation: a value of another time: u64 gave "),
        ("branch", "violation: a value of another time: branch gave "),
    ] {
        let output = torture(&["--seconds", "60", "--threads", "2", "--wrong", wrong]);
        let text = text(&output);
        assert_eq!(output.status.code(), Some(1), "{wrong}\n{text}");
        let line = text.lines().find(|line| line.starts_with(what));
        let line = line.unwrap_or_else(|| panic!("{wrong}\n{text}"));
        assert!(line.contains("; right would have been ") && line.contains("; thread "), "{line}");
        assert_eq!(number(&text, "violations"), 1);
    }
}

#[test]
fn what_cannot_be_done_is_one_line_and_a_status_of_its_own() {
    let impossible: &[&[&str]] = if has_sites() {
        &[&["--protocol", "single"], &["--protocol", "quadword", "--writer", "procmem"]]
    } else {
        &[&["--protocol", "int3"], &["--writer", "mprotect"]]
    };
    for arguments in impossible {
        let output = torture(arguments);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {output:?}");
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(err.starts_with("torture: ") && err.lines().count() == 1, "{err}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
    assert_eq!(torture(&["--protocol", "int4"]).status.code(), Some(2));
}
