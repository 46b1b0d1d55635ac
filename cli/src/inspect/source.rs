//! From an address to the function and the line in the source, by the debug information.

use std::path::Path;

use addr2line::{Loader, Location};

/// The debug information of a file, if it has any that can be read.
pub(super) struct Source(Option<Loader>);

impl Source {
    pub(super) fn open(path: &Path) -> Self {
        Source(Loader::new(path).ok())
    }

    /// The function and `file:line:column`, innermost of those that were inlined there; each empty
    /// where it is not known.
    pub(super) fn find(&self, address: u64) -> (String, String) {
        let Some(loader) = &self.0 else { return Default::default() };
        let mut found = None;
        if let Ok(mut frames) = loader.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                let place = frame.location.as_ref().map(place);
                let name = frame.function.as_ref().and_then(|name| name.demangle().ok());
                let is_ours = place.as_ref().is_some_and(|place| place.contains(EXPANSION));
                found = Some((name.map(|name| name.to_string()), place));
                if !is_ours {
                    break;
                }
            }
        }
        let (name, place) = found.unwrap_or_default();
        let name = name.or_else(|| loader.find_symbol(address).map(ToString::to_string));
        let function = name.map(|name| format!("{:#}", rustc_demangle::demangle(&name)));
        (without_hash(&function.unwrap_or_default()).to_string(), place.unwrap_or_default())
    }
}

/// A site with a test of its own stands in a function of the library's macro, inlined where the user
/// wrote it.
const EXPANSION: &str = "/src/sites/patched.rs:";

fn place(location: &Location<'_>) -> String {
    let parts = [location.line, location.column].into_iter().flatten().map(|part| part.to_string());
    let file = location.file.unwrap_or("?").to_string();
    std::iter::once(file).chain(parts).collect::<Vec<_>>().join(":")
}

/// A demangled name without the hash at its end.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((head, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            head
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::without_hash;

    #[test]
    fn hashes() {
        assert_eq!(without_hash("a::b::h0123456789abcdef"), "a::b");
        assert_eq!(without_hash("a::b::hello"), "a::b::hello");
    }
}
