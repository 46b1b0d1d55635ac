//! `inspect` on a real program: what it shows, what `--verify` finds in files that were changed, and
//! what `--diff` finds in a running process.

mod support;

use std::path::PathBuf;

use object::{Object, ObjectSection};
use serde_json::Value;
use support::{Place, example, text};

fn has_sites() -> bool {
    let has = immediate::status().target != "plain";
    if !has {
        println!("skipped: sites, of which this build has none");
    }
    has
}

fn server() -> String {
    example("server").to_str().expect("UTF-8").to_string()
}

fn contents(place: &Place) -> Value {
    serde_json::from_str(&place.succeed(&["--json", "inspect", &server()])).expect("JSON")
}

/// The site of a variable, and its address.
fn site(contents: &Value, variable: &str) -> (Value, u64) {
    let sites = contents["sites"].as_array().expect("a list");
    let site = sites.iter().find(|site| site["variable"] == variable).expect("it has a site");
    (site.clone(), site["address"].as_u64().expect("a number"))
}

/// A changed copy of the program.
fn changed(place: &Place, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = std::fs::read(example("server")).expect("the example");
    change(&mut bytes);
    let path: PathBuf = place.path().join(name);
    std::fs::write(&path, bytes).expect("a copy");
    path.to_str().expect("UTF-8").to_string()
}

/// Where an address lies in the file.
fn offset(bytes: &[u8], address: u64) -> usize {
    let file = object::File::parse(bytes).expect("an ELF file");
    let section = file
        .sections()
        .find(|one| (one.address()..one.address() + one.size()).contains(&address))
        .expect("it is in a section");
    (section.file_range().expect("it is in the file").0 + address - section.address()) as usize
}

#[test]
fn file_shows_its_sites() {
    let place = Place::new();
    if !has_sites() {
        assert!(place.fail(&["inspect", &server()], 2).contains("has no immediate variables"));
        return;
    }
    let contents = contents(&place);
    let variables = contents["variables"].as_array().expect("a list");
    assert_eq!(variables.len(), 4);
    let (limit, _) = site(&contents, "server::LIMIT");
    assert_eq!(limit["form"], "value");
    let instruction = limit["instruction"].as_str().expect("text");
    assert!(instruction.starts_with("mov ") && instruction.ends_with(", 0x1000"), "{instruction}");
    let (trace, _) = site(&contents, "server::TRACE");
    assert!(trace["form"].as_str().expect("text").ends_with("when true"), "{trace}");
    assert!(trace["instruction"].as_str().expect("text").starts_with("nop"), "{trace}");
    if cfg!(debug_assertions) {
        for name in ["server::LIMIT", "server::TRACE", "server::MODE"] {
            let (site, _) = site(&contents, name);
            assert_eq!(site["function"], "server::serve");
            let place = site["place"].as_str().expect("text");
            assert!(place.contains("cli/examples/server.rs:"), "{site}");
        }
    }
    let text = place.succeed(&["inspect", &server()]);
    assert!(text.contains("X86_64, 64 bits, 4 variables, ") && text.contains("0x1000"), "{text}");
}

#[test]
fn verify_finds_what_was_changed() {
    let place = Place::new();
    if !has_sites() {
        return;
    }
    let out = place.succeed(&["inspect", "--verify", &server()]);
    assert!(out.contains("all as recorded"), "{out}");
    let contents = contents(&place);
    let (_, trace) = site(&contents, "server::TRACE");
    let (_, limit) = site(&contents, "server::LIMIT");
    let faults = |file: &str| {
        let output = place.run(&["inspect", "--verify", file]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        text(&output.stdout)
    };

    // Another instruction at a site.
    let file = changed(&place, "instruction", |bytes| {
        let at = offset(bytes, trace);
        bytes[at..at + 5].copy_from_slice(&[0xb8, 1, 0, 0, 0]);
    });
    let out = faults(&file);
    assert!(out.contains("server::TRACE") && out.contains("its record says nop or jmp"), "{out}");

    // A jump to somewhere else.
    let file = changed(&place, "jump", |bytes| {
        let at = offset(bytes, trace);
        bytes[at..at + 5].copy_from_slice(&[0xe9, 0x7f, 0, 0, 0]);
    });
    assert!(faults(&file).contains("its record says 0x"), "{}", faults(&file));

    let file = changed(&place, "value", |bytes| {
        let at = offset(bytes, limit);
        bytes[at..at + 5].copy_from_slice(&[0x0f, 0x1f, 0x44, 0, 0]);
    });
    assert!(faults(&file).contains("its record says mov"), "{}", faults(&file));

    // A record that is gone: the runtime would not see the site.
    let file = changed(&place, "record", |bytes| {
        let file = object::File::parse(bytes.as_slice()).expect("an ELF file");
        let table = file
            .sections()
            .find(|section| section.name().is_ok_and(|name| name.starts_with("immediate_sites_")))
            .expect("a table");
        let (start, size) = table.file_range().expect("it is in the file");
        let base = table.address();
        let record = (0..size / 12)
            .find(|index| {
                let at = (start + index * 12) as usize;
                let distance = i32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
                (base + index * 12).wrapping_add_signed(distance.into()) == trace
            })
            .expect("a record");
        let at = (start + record * 12) as usize;
        bytes[at..at + 12].fill(0);
    });
    let out = faults(&file);
    assert!(out.contains(&format!("{trace:#x}")) && out.contains("without a record"), "{out}");

    // A bound that leaves records out.
    let file = changed(&place, "bound", |bytes| {
        let file = object::File::parse(bytes.as_slice()).expect("an ELF file");
        let header = object::ObjectSymbol::address(
            &file
                .symbols()
                .find(|one| {
                    object::ObjectSymbol::name(one)
                        .is_ok_and(|name| name.starts_with("__immediate_header_"))
                })
                .expect("a header"),
        );
        let at = offset(bytes, header) + 8 + 8 + 4;
        bytes[at] = bytes[at].wrapping_sub(12);
    });
    assert!(faults(&file).contains("the runtime would miss records"), "{}", faults(&file));
}

#[test]
fn files_that_cannot_be_used() {
    let place = Place::new();
    let write = |name: &str, bytes: &[u8]| {
        let path = place.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        path.to_str().expect("UTF-8").to_string()
    };
    let good = std::fs::read(example("server")).expect("the example");
    for (file, part) in [
        ("/no/such/file".to_string(), "No such file"),
        ("/".to_string(), "Is a directory"),
        (write("empty", b""), "it is no ELF file"),
        (write("script", b"#!/bin/sh\n"), "it is no ELF file"),
        (write("magic", b"\x7fELF"), "it is a broken ELF file"),
        (write("half", &good[..good.len() / 2]), "it is a broken ELF file"),
        (support::IMMEDIATE.to_string(), "it has no immediate variables and no sites"),
    ] {
        let err = place.fail(&["inspect", &file], 2);
        assert!(err.contains(part), "{file}: {err}");
    }
}

#[test]
fn diff_tells_what_was_set() {
    let place = Place::new();
    let server_process = place.start("server", &[]);
    if !has_sites() {
        return;
    }
    let pid = server_process.pid().to_string();
    let out = place.succeed(&["inspect", &server(), "--diff", &pid]);
    assert!(out.contains("are as in "), "{out}");
    server_process
        .connect()
        .set(&[("server::LIMIT", "7"), ("server::PAUSED", "on"), ("server::MODE", "Closed")], None);
    let output = place.run(&["inspect", &server(), "--diff", &pid]);
    assert_eq!(output.status.code(), Some(1));
    let out = text(&output.stdout);
    for part in [
        "server::LIMIT",
        "the variable was set from 4096 (0x1000) to 7 (0x7)",
        "the variable was set to true",
        "its test is true for the value that it has",
    ] {
        assert!(out.contains(part), "{part} in {out}");
    }
    assert!(!out.contains("server::TRACE"), "{out}");
    let own = std::process::id().to_string();
    let err = place.fail(&["inspect", &server(), "--diff", &own], 2);
    assert!(err.contains("has not loaded"), "{err}");
}
