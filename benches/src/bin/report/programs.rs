//! The other programs of this package, built.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether this build has sites.
pub(crate) const CAN_PATCH: bool =
    cfg!(all(target_arch = "x86_64", target_os = "linux", not(immediate_no_patching)));

const NAMES: [&str; 9] = [
    "growth_few",
    "growth_thousand",
    "growth_million",
    "sites",
    "register",
    "size_none",
    "size_atomic",
    "size_branch",
    "size_value",
];

/// Where they lie.
#[derive(Debug)]
pub(crate) struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// Those in `folder`; without it, those that cargo builds beside this one.
    pub(crate) fn find(folder: Option<PathBuf>) -> std::io::Result<Self> {
        if let Some(folder) = folder {
            return Ok(Programs { folder });
        }
        let own = std::env::current_exe()?;
        let folder = own.parent().unwrap_or(Path::new(".")).to_path_buf();
        let programs = Programs { folder };
        eprintln!("building the other programs");
        let mut cargo = programs.cargo("build");
        NAMES.iter().for_each(|name| {
            cargo.args(["--bin", name]);
        });
        if cargo.status()?.success() {
            Ok(programs)
        } else {
            Err(Error::new(ErrorKind::NotFound, "cargo could not build the other programs"))
        }
    }

    /// One of them.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The folder that cargo builds into.
    pub(crate) fn target(&self) -> &Path {
        self.folder.parent().unwrap_or(&self.folder)
    }

    /// A command of cargo's for this package, in this profile, that changes the lock file as little as
    /// the network.
    pub(crate) fn cargo(&self, command: &str) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args([command, "--quiet", "--locked", "--offline"])
            .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
            .arg("--target-dir")
            .arg(self.target());
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        cargo
    }
}
