//! What the kernel says of the mappings of this process.

use std::fs;

/// A line of `/proc/self/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: usize,
    /// Address behind the last.
    pub end: usize,
    /// As in `r-xp`.
    pub protection: String,
    /// The file, or what else it is.
    pub path: String,
    /// Pages of it that this process has written, in KiB; only from [`written`].
    pub written: usize,
}

fn parse(line: &str) -> Option<Mapping> {
    let mut fields = line.split_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let (start, end) =
        (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    let protection = fields.next()?.to_string();
    let path = fields.nth(3).unwrap_or_default().to_string();
    Some(Mapping { start, end, protection, path, written: 0 })
}

/// All mappings.
///
/// # Panics
///
/// Where `/proc/self/maps` cannot be read.
#[must_use]
pub fn all() -> Vec<Mapping> {
    let text = fs::read_to_string("/proc/self/maps").expect("/proc/self/maps");
    text.lines().filter_map(parse).collect()
}

/// All mappings, with what has been written in each: the pages that are no longer those of the file.
/// (`Private_Dirty` counts pages of a file as well that was built a moment ago and is not yet on the
/// disk.)
///
/// # Panics
///
/// Where `/proc/self/smaps` cannot be read.
#[must_use]
pub fn written() -> Vec<Mapping> {
    let text = fs::read_to_string("/proc/self/smaps").expect("/proc/self/smaps");
    let mut found: Vec<Mapping> = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Anonymous:") {
            let amount = rest.trim().trim_end_matches(" kB").parse().expect("KiB");
            found.last_mut().expect("a mapping comes first").written = amount;
        } else if let Some(mapping) = parse(line) {
            found.push(mapping);
        }
    }
    found
}

/// The mappings of the file that `address` belongs to which can be executed or hold the address.
///
/// # Panics
///
/// If nothing is mapped at `address`.
#[must_use]
pub fn text_of(address: usize) -> Vec<Mapping> {
    let mappings = all();
    let home = mappings
        .iter()
        .find(|mapping| (mapping.start..mapping.end).contains(&address))
        .expect("the address is mapped")
        .clone();
    let is_text = |mapping: &Mapping| {
        mapping.start == home.start
            || (mapping.path == home.path && mapping.protection.contains('x'))
    };
    mappings.into_iter().filter(is_text).collect()
}

/// Checks that the text around a function of the program is one mapping, readable and executable
/// and nothing else.
///
/// # Panics
///
/// If not.
pub fn assert_text_is_read_only(address: usize) {
    let text = text_of(address);
    assert_eq!(text.len(), 1, "the text is in one piece: {text:?}");
    assert_eq!(text[0].protection, "r-xp");
    let writable = all().into_iter().find(|mapping| mapping.protection.starts_with("rwx"));
    assert_eq!(writable, None, "nothing is writable and executable");
}

/// Writes bytes over code by hand, the way that something foreign would.
///
/// # Panics
///
/// If the text cannot be made writable.
///
/// # Safety
///
/// No thread runs the bytes before they are what they were.
#[allow(unsafe_code)]
pub unsafe fn overwrite(address: usize, bytes: &[u8]) {
    // The whole mapping, so that it stays in one piece.
    let text = text_of(address).remove(0);
    let protect = |protection| {
        // SAFETY: the mapping is the program's text, which stays executable.
        let done = unsafe {
            libc::mprotect(text.start as *mut libc::c_void, text.end - text.start, protection)
        };
        assert_eq!(done, 0, "mprotect: {}", std::io::Error::last_os_error());
    };
    protect(libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC);
    // SAFETY: writable now; nobody runs it, by the caller.
    unsafe { (address as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    protect(libc::PROT_READ | libc::PROT_EXEC);
}

/// The bytes of code.
///
/// # Safety
///
/// `length` bytes of code are loaded at `address`.
#[allow(unsafe_code)]
#[must_use]
pub unsafe fn code(address: usize, length: usize) -> Vec<u8> {
    // SAFETY: by the caller; volatile, since the bytes may be written elsewhere in the program.
    (0..length).map(|at| unsafe { (address as *const u8).add(at).read_volatile() }).collect()
}

/// Where the sites of a variable are, by address.
#[must_use]
pub fn sites_of(name: &str) -> Vec<usize> {
    immediate::sites().filter(|site| site.variable == name).map(|site| site.address).collect()
}

/// How many threads this process has.
///
/// # Panics
///
/// Where `/proc/self/task` cannot be read.
#[must_use]
pub fn threads() -> usize {
    fs::read_dir("/proc/self/task").expect("/proc/self/task").count()
}
