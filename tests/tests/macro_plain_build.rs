//! One program, built with sites, without the feature `patching`, and with
//! `--cfg immediate_no_patching`: its results must not differ.
//!
//! The program is a user's: two crates of edition 2021 that know the library under another name and
//! have no feature called `patching`. A macro that looked at the features of the crate in which it
//! expands would choose plain loads in all three builds; that the first build has sites and the
//! others have none is looked at too.

use std::fs;
use std::path::Path;
use std::process::Command;

const LIBRARY: &str = r#"//! A library with variables, read in functions that are inlined into its users.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs)]

/// Verbosity.
#[imm::immediate(crate = imm)]
pub static VERBOSITY: imm::Immediate<u8> = imm::Immediate::new(1);

#[imm::immediate(crate = imm)]
static SCALE: imm::Immediate<f64> = imm::Immediate::new(-0.5);

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, imm::ImmediateValue)]
#[immediate_value(crate = imm)]
#[repr(i16)]
pub enum Way {
    /// Down.
    Down = -300,
    /// Up.
    Up = 300,
}

/// Where it goes.
#[imm::immediate(crate = imm, name = "way")]
pub static WAY: imm::Immediate<Way> = imm::Immediate::new(Way::Down);

/// Inlined, with a variable that its user cannot name.
#[inline(always)]
pub fn scaled(value: f64) -> f64 {
    value * imm::immediate_read!(SCALE)
}

/// Sets it.
pub fn set_scale(scale: f64) -> Result<(), imm::Error> {
    SCALE.set(scale)
}

/// A copy for each constant.
#[inline]
pub fn reaches<const N: u8>() -> bool {
    imm::immediate_if!(VERBOSITY >= N)
}

/// Reads under a name of its own.
#[macro_export]
macro_rules! verbosity {
    () => {
        $crate::imm::immediate_read!($crate::VERBOSITY)
    };
}

pub use imm;
"#;

const PROGRAM: &str = r#"//! Prints what it reads, before and after it sets.
#![forbid(unsafe_code)]

use library::{imm, reaches, scaled, verbosity, Way, VERBOSITY, WAY};

#[imm::immediate(crate = imm)]
static COUNT: imm::Immediate<i64> = imm::Immediate::new(i64::MIN);
#[imm::immediate(crate = imm)]
static WIDE: imm::Immediate<u128> = imm::Immediate::new(1 << 127);
#[imm::immediate(crate = imm)]
static NAME: imm::Immediate<&'static &'static str> = imm::Immediate::new(&"first");
#[imm::immediate(crate = imm)]
static OPEN: imm::Immediate<bool> = imm::Immediate::new(true);
#[imm::immediate(crate = imm)]
static LETTER: imm::Immediate<char> = imm::Immediate::new('z');
#[imm::immediate(crate = imm)]
static LENGTH: imm::Immediate<fn(&str) -> usize> = imm::Immediate::new(str::len);

fn show(what: &str) {
    let arm = imm::immediate_if!(OPEN => { if what.len() > 6 { "long" } else { "short" } } else { "-" });
    println!(
        "{} {} {:?} {} {} {} {} {} {}",
        what,
        verbosity!(),
        scaled(3.0),
        reaches::<2>(),
        reaches::<0>(),
        imm::immediate_read!(COUNT),
        imm::immediate_read!(WIDE),
        imm::immediate_read!(NAME),
        arm,
    );
    println!(
        "  {} {} {} {} {} {} {}",
        imm::immediate_if!(WAY == Way::Up),
        imm::immediate_if!(WAY < Way::Up),
        imm::immediate_if!(COUNT < -1),
        imm::immediate_if!(likely WIDE > u128::MAX / 2),
        imm::immediate_if!(LETTER, |letter| letter.is_ascii_lowercase()),
        imm::immediate_if!(!OPEN),
        imm::immediate_read!(LENGTH)("äöü"),
    );
    for name in ["way", COUNT.name(), LETTER.name()] {
        let variable = imm::lookup(name).unwrap();
        println!(
            "  {} {} {} {} {}",
            variable.name(), variable.type_name(), variable.initial(), variable.value(), variable.updates()
        );
    }
}

fn main() {
    show("built");
    imm::Batch::new().set(&VERBOSITY, 2).set(&COUNT, -1).set(&WIDE, u128::MAX >> 1).apply().unwrap();
    show("batch");
    WAY.set(Way::Up).unwrap();
    OPEN.set(false).unwrap();
    NAME.set(&"second").unwrap();
    LENGTH.set(|text| text.chars().count()).unwrap();
    library::set_scale(f64::INFINITY).unwrap();
    imm::lookup(LETTER.name()).unwrap().set_text("Ä").unwrap();
    show("set one by one");
    for error in [
        imm::lookup("Way").map(|_| ()),
        imm::lookup("way").and_then(|way| way.set_text("up")),
        imm::configure(imm::Config::default()),
    ] {
        println!("  {}", error.unwrap_err());
    }
    eprintln!("sites {}", imm::status().sites);
}
"#;

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
    fs::write(path, text).expect("the file is written");
}

fn lay_out(folder: &Path, repository: &Path) {
    let package = |name: &str, dependencies: &str| {
        format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n\
             [dependencies]\n{dependencies}"
        )
    };
    let immediate = repository.join("immediate");
    write(
        &folder.join("Cargo.toml"),
        "[workspace]\nresolver = \"2\"\nmembers = [\"library\", \"program\"]\n",
    );
    write(
        &folder.join("library/Cargo.toml"),
        &package(
            "library",
            &format!(
                "imm = {{ package = \"immediate\", path = {:?}, default-features = false }}\n\n\
                 [features]\nwith-sites = [\"imm/patching\"]\n",
                immediate.display().to_string()
            ),
        ),
    );
    write(
        &folder.join("program/Cargo.toml"),
        &package(
            "program",
            "library = { path = \"../library\" }\n\n\
             [features]\ndefault = [\"library/with-sites\"]\n",
        ),
    );
    write(&folder.join("library/src/lib.rs"), LIBRARY);
    write(&folder.join("program/src/main.rs"), PROGRAM);
    // The versions that the repository was tested with, and nothing to resolve.
    fs::copy(repository.join("Cargo.lock"), folder.join("Cargo.lock")).expect("the lock file");
}

/// Builds and runs the program; gives what it printed and how many sites it has.
fn run(folder: &Path, target: &str, arguments: &[&str], flags: &str) -> (String, usize) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["run", "--quiet", "--package", "program"])
        .args(arguments)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", folder.join(target))
        .env("RUSTFLAGS", flags)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("IMMEDIATE")
        .output()
        .expect("cargo runs");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?} {flags:?}: {err}");
    let sites = err.lines().find_map(|line| line.strip_prefix("sites ")?.parse().ok());
    let out = String::from_utf8(output.stdout).expect("text");
    (out, sites.unwrap_or_else(|| panic!("no number of sites: {err}")))
}

#[test]
fn plain_loads_give_the_same_results() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plain_build");
    lay_out(&folder, repository);

    let (with_sites, sites) = run(&folder, "target", &[], "");
    let (by_feature, none) = run(&folder, "target", &["--no-default-features"], "");
    let (by_flag, none_either) = run(&folder, "target_flag", &[], "--cfg immediate_no_patching");
    println!("with {sites} sites:\n{with_sites}");
    assert_eq!(by_feature, with_sites, "without the feature");
    assert_eq!(by_flag, with_sites, "with the flag");
    assert_eq!((none, none_either), (0, 0));
    if cfg!(all(target_arch = "x86_64", target_os = "linux", not(miri))) {
        assert!(sites >= 13, "the features of the user's crate decide nothing: {sites}");
    }

    // What is printed is right, not only the same three times.
    let lines: Vec<_> = with_sites.lines().collect();
    let min = i64::MIN;
    let (top, below) = (1_u128 << 127, (1_u128 << 127) - 1);
    assert_eq!(lines[0], format!("built 1 -1.5 false true {min} {top} first short"));
    assert_eq!(lines[1], "  false true true true true false 6");
    assert_eq!(lines[5], format!("batch 2 -1.5 true true -1 {below} first short"));
    assert_eq!(lines[6], "  false true false false true false 6");
    assert_eq!(lines[7], "  way library::Way Down Down 0");
    assert_eq!(lines[10], format!("set one by one 2 inf true true -1 {below} second -"));
    assert_eq!(lines[11], "  true false false false false true 3");
    assert_eq!(lines[12], "  way library::Way Down Up 1");
    assert_eq!(lines[14], "  program::LETTER char z Ä 1");
    assert_eq!(lines[15], "  no variable is named \"Way\": give way");
    assert!(lines[16].ends_with("give Down, Up"), "{}", lines[16]);
    assert_eq!(lines.len(), 18);
}
