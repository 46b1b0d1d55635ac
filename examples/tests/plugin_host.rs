//! The example `plugin_host` checks itself; here it does so with few requests.

#[test]
fn serves_through_plugins_that_come_and_go() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_plugin_host"))
        .args(["--requests", "2000", "--threads", "2"])
        .output()
        .expect("runs");
    let (out, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{said}");
    assert!(out.ends_with("every answer right\nchecked\n"), "{out}{said}");
    assert!(said.is_empty(), "nothing is reported: {said}");
    for part in ["load both", "one instant", "version 2 serves", "unload the last"] {
        assert!(out.contains(part), "{part}: {out}");
    }
}
