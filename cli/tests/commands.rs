//! The command as a person and a script use it: what it prints, what it says to wrong input, its
//! exit status. Case 28: setting by name.

mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;
use support::{Place, text};

fn json(text: &str) -> Value {
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn list_shows_what_is_known() {
    let place = Place::new();
    let server = place.start("server", &[]);
    let out = place.succeed(&["list"]);
    assert!(out.starts_with(&format!("{} server  4 variables, ", server.pid())), "{out}");
    for name in ["server::TRACE", "server::LIMIT", "server::MODE", "server::PAUSED"] {
        assert!(out.contains(name), "{name} in {out}");
    }
    assert!(out.contains("The most bytes of a request."), "{out}");
    assert!(!out.contains('\x1b'), "colours in a pipe: {out}");

    let some = place.succeed(&["list", "*::L?MIT", "*MODE"]);
    assert!(some.contains("LIMIT") && some.contains("MODE") && !some.contains("TRACE"), "{some}");

    let long = place.succeed(&["list", "--long", "server::MODE"]);
    for part in [
        "doc          How requests are answered.",
        "type         server::Mode",
        "value        Full",
        "initial      Full",
        "declared     cli/examples/server.rs:",
        "module       /",
    ] {
        assert!(long.contains(part), "{part} in {long}");
    }
    let programs = place.succeed(&["list", "--programs"]);
    assert_eq!(programs.lines().count(), 1, "{programs}");

    let all = json(&place.succeed(&["list", "--json", "server::LIMIT"]));
    assert_eq!(all[0]["program"]["pid"], server.pid());
    let limit = &all[0]["variables"][0];
    assert_eq!((&limit["name"], &limit["type"]), (&"server::LIMIT".into(), &"u16".into()));
    assert_eq!((&limit["value"], &limit["initial"]), (&"4096".into(), &"4096".into()));
    assert_eq!(limit["doc"], "The most bytes of a request.");
}

#[test]
fn set_and_get() {
    let place = Place::new();
    let _server = place.start("server", &[]);
    let out = place.succeed(&["set", "server::LIMIT=0x200", "server::MODE=Degraded"]);
    assert_eq!(out, "server::LIMIT  4096 -> 512\nserver::MODE  Full -> Degraded\n");
    assert_eq!(place.succeed(&["get", "server::LIMIT"]), "512\n");
    let both = place.succeed(&["get", "server::MODE", "server::LIMIT"]);
    assert_eq!(both, "server::MODE=Degraded\nserver::LIMIT=512\n");
    let set = json(&place.succeed(&["--json", "set", "server::TRACE=on"]));
    assert_eq!(set["set"][0]["old"], "false");
    assert_eq!(set["set"][0]["new"], "true");
    let out = place.succeed(&["set", "--for", "1h", "server::LIMIT=3"]);
    assert_eq!(out, "server::LIMIT  512 -> 3  for 1h\n");
    assert!(place.succeed(&["list", "server::LIMIT"]).contains("3 (for 3600 s)"));
    let status = place.succeed(&["status"]);
    for part in ["target     ", "protocol   ", "updates    3\n", "temporary  1 variables\n"] {
        assert!(status.contains(part), "{part:?} in {status}");
    }
    let status = json(&place.succeed(&["status", "--json"]));
    assert_eq!(status["updates"], 3);
    assert_eq!(status["cost"]["sets"], 3);
}

/// Case 28 (tracing #2104, #3371): the error names the item and what would be valid; nothing changes.
#[test]
fn wrong_names_and_values() {
    let place = Place::new();
    let _server = place.start("server", &[]);
    for (assignment, expected) in [
        ("server::LIMT=1", "no variable is named \"server::LIMT\": did you mean server::LIMIT?"),
        ("limit=1", "no variable is named \"limit\": did you mean server::LIMIT?"),
        ("Server::Limit=1", "no variable is named \"Server::Limit\": did you mean server::LIMIT?"),
        (
            "server::LIMIT =1",
            "no variable is named \"server::LIMIT \": did you mean server::LIMIT?",
        ),
        (
            "nonsense=1",
            "no variable is named \"nonsense\": give server::LIMIT or server::MODE or \
             server::PAUSED or server::TRACE",
        ),
        (
            "server::LIMIT=65536",
            "cannot set server::LIMIT: \"65536\" is no value of type u16: give a number from 0 to \
             65535",
        ),
        ("server::LIMIT=", "\"\" is no value of type u16: give a number from 0 to 65535"),
        ("server::LIMIT=12kB", "\"12kB\" is no value of type u16: give a number from 0 to 65535"),
        ("server::LIMIT=-1", "\"-1\" is no value of type u16: give a number from 0 to 65535"),
        (
            "server::TRACE=True",
            "\"True\" is no value of type bool: give true or false (also on, off, 1, 0)",
        ),
        ("server::MODE=full", "is no value of type server::Mode: give Full, Degraded, Closed"),
        ("server::MODE=1", "is no value of type server::Mode: give Full, Degraded, Closed"),
    ] {
        let err = place.fail(&["set", "server::PAUSED=on", assignment], 2);
        assert!(err.starts_with("error: "), "{err}");
        assert!(err.contains(expected), "{assignment}: {err}");
        let values = place.succeed(&["get", "server::PAUSED", "server::LIMIT", "server::TRACE"]);
        assert_eq!(values, "server::PAUSED=false\nserver::LIMIT=4096\nserver::TRACE=false\n");
    }
    let output = place.run(&["--json", "set", "server::LIMT=1"]);
    let error = json(&text(&output.stderr));
    assert_eq!(error["error"]["kind"], "unknown_name");
    assert_eq!(error["error"]["valid"][0], "server::LIMIT");
    assert!(place.fail(&["get", "LIMT"], 2).contains("did you mean server::LIMIT?"));
    assert!(place.fail(&["list", "*x*"], 2).contains("no variable matches *x*"));
    let joined = place.run(&["set", "server::LIMIT"]);
    assert_eq!(joined.status.code(), Some(2));
    assert!(text(&joined.stderr).contains("write NAME=VALUE"));
    let time = place.run(&["set", "--for", "30", "server::LIMIT=1"]);
    assert_eq!(time.status.code(), Some(2));
    assert!(text(&time.stderr).contains("write it as in 30s"), "{}", text(&time.stderr));
}

#[test]
fn which_program() {
    let place = Place::new();
    assert!(place.fail(&["list"], 3).contains("no program serves in "));
    assert!(place.fail(&["get", "x"], 3).contains("control::serve()"));
    let first = place.start("server", &[]);
    let second = place.start("lifecycle", &["exit"]);
    let err = place.fail(&["get", "server::LIMIT"], 2);
    assert!(err.contains("several programs serve") && err.contains("--program"), "{err}");
    assert_eq!(place.succeed(&["-p", "server", "get", "server::LIMIT"]), "4096\n");
    let pid = second.pid().to_string();
    assert_eq!(place.succeed(&["get", "lifecycle::LEVEL", "--program", &pid]), "1\n");
    let socket = first.socket.to_str().expect("UTF-8");
    assert_eq!(place.succeed(&["--socket", socket, "get", "server::LIMIT"]), "4096\n");
    let err = place.fail(&["-p", "sever", "status"], 3);
    assert!(err.contains("no program \"sever\"") && err.contains(" server"), "{err}");
    assert!(place.fail(&["--socket", "/no/such", "status"], 3).contains("there is no such socket"));
    let all = place.succeed(&["list"]);
    assert!(all.contains("server::LIMIT") && all.contains("lifecycle::LEVEL"), "{all}");
}

#[test]
fn watch_tells_each_change_and_the_end() {
    let place = Place::new();
    let mut server = place.start("server", &[]);
    let mut watch = place
        .command(&["watch", "server::L*", "--every", "5ms"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(watch.stdout.take().expect("piped")).lines();
    let mut next = || lines.next().expect("a line").expect("UTF-8");
    assert_eq!(next(), "server::LIMIT  4096");
    place.succeed(&["set", "server::LIMIT=5", "server::TRACE=on"]);
    assert_eq!(next(), "server::LIMIT  4096 -> 5");
    server.end();
    let output = watch.wait_with_output().expect("it ends with the program");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("does not answer"), "{}", text(&output.stderr));
}

#[test]
fn watch_ends_after_a_number_of_changes() {
    let place = Place::new();
    let server = place.start("server", &[]);
    let mut watch = place
        .command(&["--json", "watch", "--every", "5ms", "--count", "1"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(watch.stdout.take().expect("piped")).lines();
    for _ in 0..4 {
        let first: Value =
            serde_json::from_str(&lines.next().expect("a line").expect("UTF-8")).expect("JSON");
        assert_eq!(first["change"], "is");
    }
    server.connect().set(&[("server::TRACE", "on")], None);
    let change: Value =
        serde_json::from_str(&lines.next().expect("a line").expect("UTF-8")).expect("JSON");
    assert_eq!((&change["change"], &change["old"]), (&"set".into(), &"false".into()));
    assert_eq!(change["variable"]["value"], "true");
    assert!(watch.wait().expect("it ends").success());
}

#[test]
fn completions_and_help() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.succeed(&["completions", shell]);
        assert!(script.contains("immediate") && script.contains("watch"), "{script}");
    }
    let help = place.succeed(&["--help"]);
    assert!(help.contains("Exit status: 0 done; 1"), "{help}");
    assert_eq!(place.run(&["dance"]).status.code(), Some(2));
}

#[test]
fn reader_that_goes_away_is_no_error() {
    let place = Place::new();
    let _server = place.start("server", &[]);
    let mut command = place.command(&["list"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut list = command.spawn().expect("it starts");
    drop(list.stdout.take());
    let output = list.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
}
