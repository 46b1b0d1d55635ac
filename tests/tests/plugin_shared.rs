//! CASES 23, 24 and 27 (log #421, tracing #3614, linkme #99): a host and plugins, each of which links
//! its own copy of the library, share variables by name and type.
//!
//! What would go wrong: two variables of one name, so that a switch that is on for the host is off in
//! the plugin; a plugin that reads its built-in value although the variable was set before it came;
//! a declaration whose module goes away and takes the variable with it; two types over one memory.

#[path = "../fixtures/support/mod.rs"]
mod support;

use std::path::PathBuf;

use immediate::{Immediate, immediate, immediate_if, immediate_read};
use immediate_tests::child;
use immediate_tests::library::Library;
use support::{Build, fixture, has_sites};

#[immediate(shared, name = "app.limit")]
static LIMIT: Immediate<u32> = Immediate::new(5);
#[immediate(name = "plugin.own")]
static OWN: Immediate<u16> = Immediate::new(1);

fn read() -> u32 {
    let odd = immediate_if!(LIMIT, |limit| limit % 2 == 1);
    assert_eq!(odd, immediate_read!(LIMIT) % 2 == 1);
    immediate_read!(LIMIT)
}

/// Builds the fixture under a name, with `--cfg`s.
fn build(name: &str, flags: &str) -> PathBuf {
    let case = format!("modules/{name}");
    let build = Build::new(&case, &fixture("shared_plugin.rs")).crate_type("cdylib");
    build.flags("-Copt-level=2 -Cstrip=symbols").flags(flags).build().expect("builds")
}

fn plugin(variable: &str) -> PathBuf {
    std::env::var_os(variable).expect("the parent names the plugin").into()
}

fn run(scenario: &str, plugins: &[(&str, PathBuf)]) -> String {
    let plugins: Vec<(&str, &str)> =
        plugins.iter().map(|(name, path)| (*name, path.to_str().expect("UTF-8"))).collect();
    let ended = child::run(scenario, &plugins);
    assert_eq!(ended.code, Some(0), "{scenario}: {ended:#?}");
    ended.err
}

immediate_tests::scenarios!(host_and_plugin, plugins_come_and_go, types_differ);

fn host_and_plugin() {
    LIMIT.set(7).expect("set before the plugin comes");
    for round in 0..3 {
        let plugin = Library::load(&plugin("PLUGIN")).expect("loads");
        // app.trace is the plugin's own declaration, the first of its name, true.
        assert_eq!(
            plugin.call("seen"),
            11_007,
            "round {round}: the constructor reads what was set"
        );
        assert_eq!((plugin.call("read"), plugin.call("get")), (11_007, 11_007));
        assert!(plugin.succeeds("set", 120));
        assert_eq!((read(), LIMIT.get()), (120, 120), "the plugin sets, the host reads");
        LIMIT.set(8).expect("set");
        assert_eq!((plugin.call("read"), plugin.call("get")), (1008, 1008));
        assert!(plugin.succeeds("by_name", 10));
        assert_eq!((read(), plugin.call("read")), (11, 11_011));
        // Both copies list one process: the shared one, app.trace, and two of the same name apart.
        assert_eq!(immediate::variables().count(), 4);
        assert_eq!(plugin.call_with("count", 0), 4);
        assert_eq!(immediate::modules().count(), 2);
        assert_eq!(plugin.call_with("count", 1), 2);
        assert_eq!(plugin.call_with("count", 4), 2);
        assert_eq!(plugin.call_with("count", 2), immediate::sites().count() as u64);
        assert_eq!(plugin.call_with("count", 3), LIMIT.site_count() as u64);
        assert_eq!(plugin.call_with("own", 40), 40);
        assert_eq!((OWN.get(), immediate_read!(OWN)), (1, 1), "it is the plugin's own");
        let both = LIMIT.site_count();
        plugin.unload();
        assert_eq!(immediate::modules().count(), 1);
        assert_eq!(immediate::variables().count(), 2);
        assert!(LIMIT.site_count() < both);
        assert_eq!(read(), 11, "the value stays");
        LIMIT.set(7).expect("set");
    }
    println!("one variable in two modules, three times");
}

#[test]
fn a_host_and_a_plugin_have_one_variable() {
    if !has_sites() {
        return;
    }
    run("host_and_plugin", &[("PLUGIN", build("alone", ""))]);
}

fn plugins_come_and_go() {
    // The host does not declare app.trace, the plugins do.
    let (first, second) = (plugin("PLUGIN"), plugin("SECOND"));
    let trace = || immediate::find("app.trace").expect("declared by a plugin");
    let one = Library::load(&first).expect("loads");
    trace().set_text("false").expect("set");
    let declared = trace();
    let two = Library::load(&second).expect("loads");
    assert_eq!(two.call("seen"), 10_005, "before its constructor");
    assert_eq!(trace().module(), first.to_str().expect("UTF-8"));
    one.unload();
    assert!(!Library::is_loaded(&first));
    // The declaration that was first is unmapped, its variable lives on in the other.
    assert_eq!(trace().module(), second.to_str().expect("UTF-8"));
    assert_eq!(
        (trace().value().as_str(), two.call("read"), two.call("get")),
        ("false", 10_005, 10_005)
    );
    declared.set_text("true").expect("the shared variable is still there");
    assert_eq!((two.call("read"), two.call("get")), (11_005, 11_005));
    declared.set_text("false").expect("set");
    let one = Library::load(&first).expect("loads again");
    assert_eq!((one.call("seen"), one.call("read")), (10_005, 10_005));
    assert!(two.succeeds("set", 6));
    assert_eq!((one.call("read"), two.call("read"), read()), (6, 6, 6));
    two.unload();
    one.unload();
    assert!(immediate::find("app.trace").is_none(), "nobody declares it any more");
    assert!(declared.set_text("true").is_err());
    // With the last declaration goes the value.
    let one = Library::load(&first).expect("loads again");
    assert_eq!(one.call("read"), 1006);
    one.unload();
}

#[test]
fn a_shared_variable_outlives_the_module_that_declared_it_first() {
    if !has_sites() {
        return;
    }
    run("plugins_come_and_go", &[("PLUGIN", build("one", "")), ("SECOND", build("two", ""))]);
}

fn types_differ() {
    LIMIT.set(9).expect("set");
    let wide = Library::load(&plugin("WIDE")).expect("loads");
    assert_eq!(wide.call("read"), 11_005, "its own, with its own initial value");
    assert!(wide.succeeds("set", 1 << 40));
    assert_eq!((wide.call("read"), wide.call("get")), (101_000 + (1 << 40), 101_000 + (1 << 40)));
    assert_eq!(read(), 9);
    let named = |v: &immediate::Variable| v.name() == "app.limit";
    let mut types: Vec<_> =
        immediate::variables().filter(named).map(|v| v.type_name().to_string()).collect();
    types.sort();
    assert_eq!(types, ["u32", "u64"]);
    wide.unload();
    LIMIT.set(10).expect("set");
    assert_eq!(read(), 10);
}

#[test]
fn a_type_that_differs_is_reported_and_stays_apart() {
    if !has_sites() {
        return;
    }
    let wide = build("wide", "--cfg wide");
    let said = run("types_differ", &[("WIDE", wide.clone())]);
    let lines: Vec<&str> = said.lines().collect();
    let [line] = lines[..] else { panic!("one line: {said}") };
    for part in [
        "app.limit",
        "u64",
        "u32",
        "shared_plugin.rs:",
        "plugin_shared.rs:",
        wide.to_str().unwrap(),
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    println!("{line}");
}
