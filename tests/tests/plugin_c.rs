//! The header for C: a plugin in C in a host in Rust, a plugin in Rust in a host in C, with both
//! compilers and in both languages.
//!
//! What would go wrong: a layout in the header that is not the library's; a site that the compiler
//! merges or moves; a file of C that registers its module a second time; a host in C that nobody
//! registers because it was there before any runtime.

#[path = "../fixtures/support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use immediate::{Immediate, immediate, immediate_read};
use immediate_tests::child;
use immediate_tests::library::Library;
use support::{Build, fixture, has_sites};

#[immediate(shared, name = "app.limit")]
static LIMIT: Immediate<u32> = Immediate::new(8);

immediate_tests::scenarios!(host_in_rust);

const COMPILERS: [(&str, &[&str]); 4] = [
    ("gcc", &["-std=c11"]),
    ("clang", &["-std=c11"]),
    ("g++", &["-x", "c++", "-std=c++17"]),
    ("clang++", &["-x", "c++", "-std=c++17"]),
];

/// Compiles files of C; none if there is no such compiler, which is said.
fn compile(compiler: &str, flags: &[&str], sources: &[&str], out: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c");
    fs::create_dir_all(&folder).expect("a folder");
    let out = folder.join(format!("{out}_{compiler}{}", flags.last().expect("flags")));
    let mut command = Command::new(compiler);
    command
        .args(["-Wall", "-Wextra", "-Werror", "-fno-common", "-I"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../include"))
        .args(flags)
        .args(sources.iter().map(|name| fixture(name)))
        .args(["-o".as_ref(), out.as_os_str()])
        .args(["-x", "none", "-lpthread", "-ldl"]);
    match command.output() {
        Err(error) => {
            println!("not tested: {compiler} is not installed ({error})");
            None
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{command:?}\n{said}");
            Some(out)
        }
    }
}

fn host_in_rust() {
    LIMIT.set(10).expect("set before the plugin comes");
    for _ in 0..3 {
        let path = std::env::var_os("PLUGIN").expect("the parent names the plugin");
        let plugin = Library::load(Path::new(&path)).expect("loads");
        assert_eq!(plugin.call("seen"), 1010, "the constructor reads what was set");
        assert_eq!((plugin.call("read"), plugin.call("get")), (1010, 1010));
        assert_eq!(plugin.call("part"), 10, "in the second file as well");
        assert!(plugin.succeeds("set", 12));
        assert_eq!((immediate_read!(LIMIT), LIMIT.get(), plugin.call("part")), (12, 12, 12));
        LIMIT.set(14).expect("set");
        assert_eq!(
            (plugin.call("read"), plugin.call("get"), plugin.call("part")),
            (1014, 1014, 14)
        );
        assert!(plugin.succeeds("set_both", 16));
        assert_eq!((plugin.call("read"), immediate_read!(LIMIT)), (16, 16));
        assert!(plugin.succeeds("by_name", 18));
        assert_eq!((plugin.call("read"), immediate_read!(LIMIT)), (18, 18));
        assert_eq!(plugin.call("types"), 0);
        assert_eq!(plugin.call_with("count", 0), immediate::variables().count() as u64);
        let modules: Vec<_> = immediate::modules().collect();
        assert_eq!(modules.len(), 2, "{modules:?}");
        let own = modules.iter().find(|one| Path::new(&one.path) == path).expect("listed");
        assert_eq!(own.variables, 6, "two files declare the shared one");
        assert!(own.sites >= 10, "{own:?}");
        let own = immediate::find("plugin.own").expect("listed");
        assert_eq!((own.type_name(), own.initial(), own.value().as_str()), ("u16", "65535", "0"));
        assert!(own.file().ends_with("c_plugin.c"));
        plugin.unload();
        assert_eq!((immediate::modules().count(), immediate::variables().count()), (1, 1));
        LIMIT.set(10).expect("set");
    }
}

#[test]
fn a_plugin_in_c_shares_with_a_host_in_rust() {
    if !has_sites() {
        return;
    }
    for (compiler, language) in COMPILERS {
        for level in ["-O0", "-O2", "-Os"] {
            let flags = [language, &["-fPIC", "-shared", level]].concat();
            let sources = ["c_plugin.c", "c_part.c"];
            let Some(plugin) = compile(compiler, &flags, &sources, "plugin") else { continue };
            child::succeed("host_in_rust", &[("PLUGIN", plugin.to_str().expect("UTF-8"))]);
        }
    }
}

#[test]
fn a_plugin_in_rust_shares_with_a_host_in_c() {
    if !has_sites() {
        return;
    }
    let build = Build::new("c", &fixture("shared_plugin.rs")).crate_type("cdylib");
    let plugin = build.flags("-Copt-level=2 -Cstrip=symbols").build().expect("builds");
    // A statically linked host loads libraries as well; to them, the loader lists nothing.
    let kinds: [&[&str]; 3] =
        [&["-fPIE", "-pie", "-s", "-O0"], &["-O2"], &["-fPIE", "-static-pie", "-O2"]];
    for (compiler, language) in &COMPILERS[..2] {
        for kind in kinds {
            let flags = [*language, kind].concat();
            let name = format!("host{}", kind.len());
            let Some(host) = compile(compiler, &flags, &["c_host.c"], &name) else { continue };
            let output = support::run(Command::new(&host).arg(&plugin)).expect("runs");
            assert_eq!(output, "checked\n");
        }
    }
}
