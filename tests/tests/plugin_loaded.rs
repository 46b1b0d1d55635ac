//! `immediate::plugin`: what each stage says when it fails, and what it gives when it does not.

#[path = "../fixtures/support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use immediate::plugin::{Plugin, PluginError};
use immediate::{Immediate, immediate, immediate_read};
use immediate_tests::child;
use support::{Build, fixture, has_sites};

#[immediate(shared, name = "app.limit")]
static LIMIT: Immediate<u32> = Immediate::new(8);

immediate_tests::scenarios!(stages);

#[allow(unsafe_code)]
fn load(path: &Path) -> Result<Plugin, PluginError> {
    // SAFETY: a fixture of these tests.
    unsafe { Plugin::load(path) }
}

#[allow(unsafe_code)]
fn stages() {
    let folder = PathBuf::from(std::env::var_os("FOLDER").expect("the parent names it"));
    let text = |path: &Path| path.to_str().expect("UTF-8").to_string();

    let missing = folder.join("missing.so");
    let error = load(&missing).expect_err("no such file");
    assert!(matches!(&error, PluginError::File { path, .. } if *path == missing));
    assert!(error.to_string().contains(&text(&missing)), "{error}");

    let no_library = folder.join("text.so");
    let error = load(&no_library).expect_err("no library");
    assert!(matches!(&error, PluginError::Load { path, .. } if *path == no_library));
    assert!(error.to_string().contains("invalid ELF header"), "{error}");

    let broken = folder.join("broken.so");
    let error = load(&broken).expect_err("its records point outside");
    assert!(matches!(&error, PluginError::Register { path, .. } if *path == broken));
    assert!(error.to_string().contains("its code outside the module"), "{error}");
    assert_eq!(error.to_string().lines().count(), 1);
    assert_eq!(immediate::modules().count(), 1, "and it is unloaded again");

    LIMIT.set(10).expect("set");
    let good = folder.join("libshared_plugin.so");
    let plugin = load(&good).expect("loads");
    assert_eq!(plugin.path(), good);
    let module = plugin.module().expect("it has variables");
    assert_eq!((module.path.as_str(), module.variables), (good.to_str().expect("UTF-8"), 3));
    // SAFETY: a function of the fixture.
    let read = unsafe { plugin.get::<extern "C" fn() -> u64>("plugin_read") }.expect("exported");
    assert_eq!(read(), 1010);
    // SAFETY: never called.
    let error = unsafe { plugin.get::<fn()>("nobody") }.expect_err("no such symbol");
    assert!(matches!(&error, PluginError::Symbol { name, .. } if name == "nobody"), "{error}");
    // SAFETY: a function of the fixture.
    let set = unsafe { plugin.get::<extern "C" fn(u64) -> bool>("plugin_set") }.expect("exported");
    assert!(set(12));
    assert_eq!(immediate_read!(LIMIT), 12);

    let twice = load(&good).expect("loads");
    assert!(!plugin.unload().expect("closes"), "somebody else has it open");
    assert!(twice.module().is_some());
    assert!(twice.unload().expect("closes"), "gone");
    assert_eq!(immediate::modules().count(), 1);
    drop(load(&good).expect("loads"));
    assert_eq!(immediate::modules().count(), 1, "dropping it unloads as well");
}

#[test]
fn every_stage_says_what_is_wrong() {
    if !has_sites() {
        return;
    }
    let build = Build::new("loaded", &fixture("shared_plugin.rs")).crate_type("cdylib");
    let plugin = build.flags("-Copt-level=2").build().expect("builds");
    let folder = plugin.parent().expect("in a folder");
    fs::write(folder.join("text.so"), "no library, although its name says so\n".repeat(20))
        .expect("written");
    support::damage_a_site(&plugin, &folder.join("broken.so"));
    child::succeed("stages", &[("FOLDER", folder.to_str().expect("UTF-8"))]);
}
