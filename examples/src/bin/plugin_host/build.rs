//! Builds the plugins: the one in Rust twice, with cargo, and the one in C.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The plugins, in a folder that is removed in the end.
pub(crate) struct Built {
    folder: PathBuf,
    pub(crate) older: PathBuf,
    pub(crate) newer: PathBuf,
    pub(crate) in_c: PathBuf,
}

impl Drop for Built {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's own cleaning.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(crate) fn all() -> Result<Built, super::Failure> {
    let folder = std::env::temp_dir().join(format!("plugin_host_{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let place = |name: &str| folder.join(name);
    let built = Built {
        older: place("older.so"),
        newer: place("newer.so"),
        in_c: place("in_c.so"),
        folder: folder.clone(),
    };
    in_rust(&[], &built.older)?;
    in_rust(&["--features", "newer"], &built.newer)?;
    in_c(&built.in_c)?;
    Ok(built)
}

fn in_rust(flags: &[&str], to: &Path) -> Result<(), super::Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["build", "--release", "-p", "immediate-example-plugin", "--message-format=json"])
        .args(flags)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("the plugin in Rust does not build: {said}").into());
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    // The path is a text of JSON, in which a path of this kind has nothing to be undone.
    let library = messages
        .split('"')
        .rfind(|text| text.ends_with("libimmediate_example_plugin.so"))
        .ok_or("cargo does not say where the plugin is")?;
    fs::copy(library, to)?;
    Ok(())
}

fn in_c(to: &Path) -> Result<(), super::Failure> {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| OsString::from("cc"));
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(&compiler)
        .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared", "-I"])
        .arg(here.join("../include"))
        .arg(here.join("plugin/plugin.c"))
        .arg("-o")
        .arg(to)
        .output()
        .map_err(|error| format!("{} cannot be run: {error}", compiler.display()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("the plugin in C does not build: {}", String::from_utf8_lossy(&output.stderr))
        .into())
}
