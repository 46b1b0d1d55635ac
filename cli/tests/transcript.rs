//! The session in the README, replayed: what it shows is what the command prints.

mod support;

use support::{Place, Program, text};

/// Commands of the session, each with what follows it.
fn session() -> Vec<(String, String)> {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
    let readme = std::fs::read_to_string(readme).expect("the README");
    let block = readme.split("```console\n$ immediate list").nth(1).expect("the session");
    let block = block.split("\n```").next().expect("its end");
    let block = format!("$ immediate list{block}\n");
    let parts = block.split("$ immediate ").skip(1);
    let parts = parts.map(|part| part.split_once('\n').expect("a command has a line of its own"));
    parts.map(|(command, output)| (command.to_string(), output.to_string())).collect()
}

/// Output without what differs from one run to the next: the process id, the path of the program, how
/// many sites the compiler made, spaces that align columns.
fn comparable(output: &str, pid: u32) -> String {
    let pid = pid.to_string();
    let mut lines = Vec::new();
    for line in output.lines() {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        if words.first() == Some(&pid.as_str()) || words.first() == Some(&"26125") {
            words[0] = "PID";
            words.truncate(4);
        }
        for word in &mut words {
            if word.len() == 1 && word.as_bytes()[0].is_ascii_digit() {
                *word = "N";
            }
        }
        lines.push(words.join(" "));
    }
    lines.join("\n")
}

fn run(place: &Place, server: &Program, command: &str, expected: &str) {
    let arguments: Vec<&str> = command.split_whitespace().collect();
    let output = place.run(&arguments);
    let found = text(&output.stdout) + &text(&output.stderr);
    let (found, expected) = (comparable(&found, server.pid()), comparable(expected, server.pid()));
    assert_eq!(found, expected, "immediate {command}");
}

#[test]
fn readme_session() {
    let place = Place::new();
    let server = place.start("server", &[]);
    let session = session();
    assert!(session.len() >= 6, "{session:?}");
    for (command, expected) in &session {
        run(&place, &server, command, expected);
    }
}
