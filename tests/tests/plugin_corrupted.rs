//! A plugin whose tables are cut short, misaligned, or point outside it is refused when it is loaded,
//! by an error that names it; everything else works, and the plugin's variables keep their values.
//!
//! What would go wrong: a record is followed into memory that is somebody else's, read, and patched.

#[path = "../fixtures/support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use immediate::{Immediate, immediate, immediate_read};
use immediate_tests::child;
use immediate_tests::library::Library;
use object::{Object, ObjectSection};
use support::{Build, fixture, has_sites};

#[immediate(shared, name = "app.limit")]
static LIMIT: Immediate<u32> = Immediate::new(8);

immediate_tests::scenarios!(damaged);

fn damaged() {
    let [plugin, healthy] = ["PLUGIN", "HEALTHY"]
        .map(|name| PathBuf::from(std::env::var_os(name).expect("the parent names it")));
    LIMIT.set(10).expect("set");
    let damaged = Library::load(&plugin).expect("loads");
    assert_eq!(immediate::modules().count(), 1, "it is refused");
    // As it was built: values and comparisons are right, and the test by closure, whose record nobody
    // follows, is not taken.
    assert_eq!((damaged.call("read"), damaged.call("get")), (1005, 11_005));
    assert!(!damaged.succeeds("set", 20), "its variables cannot be set");
    assert_eq!((damaged.call("read"), damaged.call("get")), (1005, 11_005), "nothing changed");
    let healthy = Library::load(&healthy).expect("loads");
    assert!(healthy.succeeds("set", 12));
    assert_eq!((immediate_read!(LIMIT), healthy.call("read")), (12, 1012));
    damaged.unload();
    healthy.unload();
    LIMIT.set(14).expect("set");
    assert_eq!(immediate_read!(LIMIT), 14);
}

/// Where a section lies in the file, and how long it is.
fn section(bytes: &[u8], name: &str) -> (usize, usize) {
    let file = object::File::parse(bytes).expect("an ELF file");
    let mut all = file.sections();
    let section =
        all.find(|one| one.name().is_ok_and(|found| found.starts_with(name))).expect("a section");
    let (offset, length) = section.file_range().expect("in the file");
    (offset as usize, length as usize)
}

#[test]
fn a_plugin_with_broken_tables_is_refused_and_the_rest_works() {
    if !has_sites() {
        return;
    }
    let build = |name: &str| {
        let build = Build::new(&format!("broken/{name}"), &fixture("shared_plugin.rs"));
        build.crate_type("cdylib").flags("-Copt-level=2").build().expect("builds")
    };
    let (plugin, healthy) = (build("plugin"), build("healthy"));
    let bytes = fs::read(&plugin).expect("built");
    // The header: layout 1, 36 bytes, then the bounds of four tables.
    let header = bytes
        .windows(8)
        .position(|bytes| bytes == [1, 0, 0, 0, 36, 0, 0, 0])
        .expect("the header is in the file");
    let bound = |n: usize| header + 8 + 4 * n;
    let (sites, length) = section(&bytes, "immediate_sites");
    assert!(length >= 24, "the record of zeros and one more");
    let (tests, _) = section(&bytes, "immediate_tests");
    let field = |table: usize, record: usize, size: usize, n: usize| table + record * size + 4 * n;

    type Change = fn(i32) -> i32;
    let far: Change = |distance| distance.wrapping_add(0x3fff_0000);
    let cases: [(&str, usize, Change); 9] = [
        ("sites cut short", bound(3), |end| end - 4),
        ("sites misaligned", bound(2), |start| start + 2),
        ("sites end before they begin", bound(3), |end| end - 0x1000),
        ("sites outside", bound(2), |start| start - 0x4000_0000),
        ("a layout that is not known", header, |_| 7),
        ("code outside", field(sites, 1, 12, 0), far),
        ("a variable outside", field(sites, 1, 12, 1), far),
        ("a test outside", field(tests, 1, 16, 3), far),
        ("a variable that is no slot", field(sites, 1, 12, 1), |distance| distance + 4),
    ];
    for (what, place, change) in cases {
        let mut damaged = bytes.clone();
        let old = i32::from_le_bytes(damaged[place..place + 4].try_into().expect("four bytes"));
        damaged[place..place + 4].copy_from_slice(&change(old).to_le_bytes());
        assert!(damaged != bytes, "{what} is a damage");
        let path = plugin.with_file_name(format!("{}.so", what.replace(' ', "_")));
        fs::write(&path, &damaged).expect("written");
        let text = |path: &Path| path.to_str().expect("UTF-8").to_string();
        let (path, healthy) = (text(&path), text(&healthy));
        let ended = child::run("damaged", &[("PLUGIN", &path), ("HEALTHY", &healthy)]);
        assert_eq!(ended.code, Some(0), "{what}: {ended:#?}");
        let said: Vec<&str> = ended.err.lines().collect();
        let [line, refusal] = said[..] else { panic!("{what}: {}", ended.err) };
        assert!(line.contains(&format!("{path} is not registered")), "{what}: {line}");
        assert!(refusal.contains("app.limit"), "{what}: {refusal}");
        println!("{what}: {line}");
    }
}
