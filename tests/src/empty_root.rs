//! A root folder with nothing in it, not even `/proc`.

#![allow(unsafe_code)]

use std::fs;

/// Makes an empty folder the root of this process: as root, or as root of a user namespace of its own.
/// Gives `false`, and says so, where neither is allowed.
///
/// # Panics
///
/// If there is no folder for temporary files.
#[must_use]
pub fn enter() -> bool {
    let name = format!("immediate-empty-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    fs::create_dir(&path).expect("a folder");
    std::env::set_current_dir(&path).expect("the folder is there");
    // It lives on as long as a process is in it.
    fs::remove_dir(&path).expect("the folder is empty");
    // SAFETY: changes what this process sees, nothing outside of it.
    let done = unsafe {
        (libc::geteuid() == 0 || libc::unshare(libc::CLONE_NEWUSER) == 0)
            && libc::chroot(c".".as_ptr()) == 0
    };
    if !done {
        println!("skipped: chroot: {}", std::io::Error::last_os_error());
        return false;
    }
    assert!(!fs::exists("/proc").unwrap_or(false));
    true
}
