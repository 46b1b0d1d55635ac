//! Where sockets lie, and the removal of those that nobody listens at.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::initial;

/// The end of a socket's file name.
const SUFFIX: &str = ".sock";
/// The longest path of a socket (`unix(7)`: 108 bytes with the zero).
const LONGEST: usize = 107;

/// The directories in which programs of this user serve: `$XDG_RUNTIME_DIR/immediate`, where that
/// is set, and `/tmp/immediate-UID`.
///
/// A program takes the first in which it can. A socket's name is `PID-PROGRAM.sock`.
///
/// ```
/// let places = immediate::control::directories();
/// assert!(places.last().expect("one at least").starts_with("/tmp"));
/// ```
#[must_use]
pub fn directories() -> Vec<PathBuf> {
    let runtime = initial::environment("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|path| path.is_absolute()).map(|path| path.join("immediate"));
    let own = PathBuf::from(format!("/tmp/immediate-{}", user()));
    runtime.into_iter().chain([own]).collect()
}

/// The user that the program runs as.
pub(super) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The path of a new socket, in a directory that nobody else can reach into.
pub(super) fn place(name: &str) -> io::Result<PathBuf> {
    let file = format!("{}-{}{SUFFIX}", std::process::id(), usable(name));
    let mut first = None;
    for directory in directories() {
        let path = directory.join(&file);
        let checked = if path.as_os_str().len() > LONGEST {
            let text = format!("{} is too long for the path of a socket", path.display());
            Err(io::Error::new(ErrorKind::InvalidFilename, text))
        } else {
            prepare(&directory)
        };
        match checked {
            Ok(()) => {
                clean(&directory);
                return Ok(path);
            }
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| ErrorKind::NotFound.into()))
}

/// The name with nothing but letters, digits, `.`, `_` and `-`, and not too long.
fn usable(name: &str) -> String {
    let letter = |letter: char| {
        if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '_' }
    };
    name.chars().take(32).map(letter).collect()
}

/// Makes the directory if need be, and checks that it is ours alone.
fn prepare(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(io::Error::new(
                error.kind(),
                format!("cannot make the directory {}: {error}", directory.display()),
            ));
        }
        _ => {}
    }
    let found = fs::symlink_metadata(directory)?;
    if found.is_dir() && found.uid() == user() && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        ErrorKind::PermissionDenied,
        format!(
            "{} is no directory of user {} with mode 0700; remove it, or set XDG_RUNTIME_DIR",
            directory.display(),
            user()
        ),
    ))
}

/// Removes sockets at which nobody listens: those of programs that were killed.
fn clean(directory: &Path) {
    let Ok(list) = fs::read_dir(directory) else { return };
    for entry in list.flatten() {
        let path = entry.path();
        // A socket gets its name only when it is listened at, so whoever refuses is gone.
        let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket())
            && !entry.file_name().as_encoded_bytes().starts_with(b".");
        if is_socket
            && UnixStream::connect(&path)
                .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        {
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files() {
        assert_eq!(usable("my server/1\n"), "my_server_1_");
        assert_eq!(usable(&"long".repeat(20)).len(), 32);
        assert_eq!(usable("é"), "_");
    }
}
