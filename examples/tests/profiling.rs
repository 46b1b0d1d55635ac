//! The example of profiling toggles as a person runs it: off it counts nothing, switched on by name it
//! prints its table and draws its flame graph, and the results of the work are the same.

use std::process::{Command, Output};

fn profiling(switches: &str, arguments: &[&str]) -> Output {
    let place = tempfile::tempdir().expect("a directory for its socket");
    let mut command = Command::new(env!("CARGO_BIN_EXE_profiling"));
    command.args(["--requests", "20", "--threads", "3"]).args(arguments);
    command.env("IMMEDIATE", switches).env("XDG_RUNTIME_DIR", place.path());
    command.output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

#[test]
fn switched_on_by_name() {
    let off = profiling("", &[]);
    let off = text(&off.stdout);
    assert!(off.contains("nothing was switched on"), "{off}");
    assert!(!off.contains("profile.request  "), "{off}");

    let place = tempfile::tempdir().expect("a directory");
    let [folded, flame] = ["folded", "flame.svg"].map(|name| place.path().join(name));
    let [folded_text, flame_text] = [&folded, &flame].map(|path| path.to_str().expect("UTF-8"));
    let on = profiling(
        "profile.request=on,profile.sort=on,profile.sum=on",
        &["--folded", folded_text, "--flame", flame_text],
    );
    let (out, err) = (text(&on.stdout), text(&on.stderr));
    assert!(on.status.success() && err.is_empty(), "{out}{err}");
    assert_eq!(out.lines().next(), off.lines().next(), "the work is the same");
    let row = |name: &str| {
        let row = out.lines().find(|line| line.starts_with(name)).expect("a row");
        row.split_whitespace().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(row("profile.request")[1..3], ["0", "60"]);
    assert_eq!(row("profile.sum")[1..3], ["120000", "60"], "{out}");
    assert!(!out.contains("profile.sleep"), "{out}");

    let folded = std::fs::read_to_string(folded).expect("written");
    let stacks: Vec<&str> = folded.lines().filter_map(|line| line.split(' ').next()).collect();
    let expected =
        ["profile.request", "profile.request;profile.sort", "profile.request;profile.sum"];
    assert_eq!(stacks.len(), 3, "{folded}");
    assert!(expected.iter().all(|stack| stacks.contains(stack)), "{folded}");
    let flame = std::fs::read_to_string(flame).expect("written");
    assert!(flame.starts_with("<?xml") && flame.contains("profile.sort"), "{flame}");
}

#[test]
fn nothing_to_draw_is_told() {
    let place = tempfile::tempdir().expect("a directory");
    let flame = place.path().join("flame.svg");
    let output = profiling("", &["--flame", flame.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(2));
    let err = text(&output.stderr);
    assert!(err.lines().count() == 1 && err.contains("switch a profile on"), "{err}");
    assert!(!flame.exists());
}
