//! The ELF objects that are loaded.
//!
//! The dynamic loader lists them (`dl_iterate_phdr(3)`), but not to a library that a statically linked
//! program has loaded: the C library that came along with it knows of nothing. There the mappings of
//! the process tell.
//!
//! # Invariants
//!
//! * `E1` The program headers of an object are mapped as long as it is: they lie in its first
//!   segment. The loader keeps its list still while it shows it. A statically linked program does not
//!   unload in one thread while another one loads; its `dlopen` is not made for more.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::fs;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

cfg_select! {
    target_pointer_width = "64" => {
        use libc::{Elf64_Ehdr as FileHeader, Elf64_Phdr as Segment};
    }
    _ => {
        use libc::{Elf32_Ehdr as FileHeader, Elf32_Phdr as Segment};
    }
}

/// A loaded object.
pub(crate) struct Loaded<'a> {
    /// What is added to the addresses in the file.
    pub(crate) base: usize,
    /// Its path; empty for the executable.
    pub(crate) path: &'a str,
    pub(crate) segments: &'a [Segment],
    pub(crate) is_executable: bool,
}

impl Loaded<'_> {
    /// Where the segments of a kind are in memory, with their flags.
    pub(crate) fn ranges(&self, kind: u32) -> impl Iterator<Item = (Range<usize>, &Segment)> {
        self.segments.iter().filter(move |segment| segment.p_type == kind).map(|segment| {
            let start = self.base.wrapping_add(segment.p_vaddr as usize);
            (start..start.wrapping_add(segment.p_memsz as usize), segment)
        })
    }
}

/// Takes an object; whether it wants the next one.
type Visit<'a> = &'a mut dyn FnMut(&Loaded<'_>) -> bool;

/// Visits the loaded objects until one is the last that is wanted.
pub(crate) fn each(mut visit: Visit<'_>) {
    if is_listed() {
        by_loader(&mut visit);
    } else {
        by_mappings(visit);
    }
}

/// Whether the loader lists the object that holds this code.
fn is_listed() -> bool {
    static LISTED: AtomicU8 = AtomicU8::new(0);
    match LISTED.load(Ordering::Relaxed) {
        0 => {
            let own = is_listed as fn() -> bool as usize;
            let mut found = false;
            let mut look: Visit<'_> = &mut |object| {
                found = object.ranges(libc::PT_LOAD).any(|(range, _)| range.contains(&own));
                !found
            };
            by_loader(&mut look);
            LISTED.store(if found { 1 } else { 2 }, Ordering::Relaxed);
            found
        }
        known => known == 1,
    }
}

fn by_loader(visit: &mut Visit<'_>) {
    struct State<'a, 'b> {
        visit: &'a mut Visit<'b>,
        seen: usize,
    }

    unsafe extern "C" fn show(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        state: *mut c_void,
    ) -> c_int {
        // SAFETY: `dl_iterate_phdr` passes a description that is valid during the call, and our state.
        let (info, state) = unsafe { (&*info, &mut *state.cast::<State<'_, '_>>()) };
        state.seen += 1;
        if info.dlpi_phdr.is_null() {
            return 0;
        }
        // SAFETY: E1.
        let segments =
            unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let path = if info.dlpi_name.is_null() {
            "".into()
        } else {
            // SAFETY: the loader's own name of the object.
            unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy()
        };
        let base = info.dlpi_addr as usize;
        // The first object is the program (`dl_iterate_phdr(3)`).
        let object = Loaded { base, path: &path, segments, is_executable: state.seen == 1 };
        c_int::from(!(state.visit)(&object))
    }

    let mut state = State { visit, seen: 0 };
    // SAFETY: the callback gets this state back, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(show), (&raw mut state).cast()) };
}

/// A line of `/proc/self/maps`.
struct Mapping<'a> {
    range: Range<usize>,
    is_readable: bool,
    is_executable: bool,
    offset: usize,
    path: &'a str,
}

fn mapping(line: &str) -> Option<Mapping<'_>> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    let protection = fields.next()?.as_bytes();
    let offset = number(fields.next()?)?;
    let path = fields.nth(2)?.trim_start();
    Some(Mapping {
        range: number(start)?..number(end)?,
        is_readable: protection.first() == Some(&b'r'),
        is_executable: protection.get(2) == Some(&b'x'),
        offset,
        path,
    })
}

fn by_mappings(visit: Visit<'_>) {
    let Ok(text) = fs::read_to_string("/proc/self/maps") else { return };
    let all: Vec<Mapping<'_>> = text.lines().filter_map(mapping).collect();
    let executable = fs::read_link("/proc/self/exe").unwrap_or_default();
    for first in all.iter().filter(|one| one.offset == 0 && one.is_readable) {
        if !first.path.starts_with('/') || first.range.len() < size_of::<FileHeader>() {
            continue;
        }
        // SAFETY: readable, and as long as the header; any bytes are one.
        let header = unsafe { &*(first.range.start as *const FileHeader) };
        let (place, count) = (header.e_phoff as usize, usize::from(header.e_phnum));
        let bytes = count * size_of::<Segment>();
        let is_mapped = place.checked_add(bytes).is_some_and(|end| end <= first.range.len());
        if !header.e_ident.starts_with(b"\x7fELF")
            || !is_mapped
            || !place.is_multiple_of(align_of::<Segment>())
        {
            continue;
        }
        // SAFETY: E1; looked at above.
        let segments = unsafe {
            std::slice::from_raw_parts((first.range.start + place) as *const Segment, count)
        };
        let lowest = segments.iter().filter(|one| one.p_type == libc::PT_LOAD);
        let Some(lowest) = lowest.map(|one| one.p_vaddr as usize).min() else { continue };
        let is_executable = executable.as_os_str() == first.path;
        let path = if is_executable { "" } else { first.path };
        let base = first.range.start.wrapping_sub(lowest & !0xfff);
        let object = Loaded { base, path, segments, is_executable };
        // A file that is only being read has its code nowhere.
        let is_loaded = object
            .ranges(libc::PT_LOAD)
            .filter(|(_, segment)| segment.p_flags & libc::PF_X != 0)
            .all(|(code, _)| {
                let holds = |one: &Mapping<'_>| one.range.contains(&code.start);
                all.iter().any(|one| one.is_executable && one.path == first.path && holds(one))
            });
        if is_loaded && !visit(&object) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Base, path and code of all objects that a way shows.
    fn shown(way: impl FnOnce(Visit<'_>)) -> Vec<(usize, String, bool, usize)> {
        let mut all = Vec::new();
        way(&mut |object| {
            let code = object.ranges(libc::PT_LOAD).find(|(_, one)| one.p_flags & libc::PF_X != 0);
            let code = code.map_or(0, |(range, _)| range.start);
            all.push((object.base, object.path.to_string(), object.is_executable, code));
            true
        });
        // The kernel's own object is no file.
        all.retain(|(_, path, ..)| !path.contains("vdso"));
        all.sort();
        all
    }

    #[test]
    #[cfg_attr(miri, ignore = "no loader")]
    fn both_ways_show_the_same_objects() {
        assert!(is_listed());
        let _held = fs::read_to_string("/proc/self/maps").expect("/proc");
        let by_loader = shown(|mut visit| by_loader(&mut visit));
        let name = |path: &str| path.rsplit('/').next().map(String::from);
        let names = |all: &[(usize, String, bool, usize)]| {
            let short = |one: &(usize, String, bool, usize)| (one.0, name(&one.1), one.2, one.3);
            all.iter().map(short).collect::<Vec<_>>()
        };
        let by_mappings = shown(|visit| by_mappings(visit));
        assert!(by_loader.len() >= 3, "the program, the C library, the loader: {by_loader:?}");
        assert_eq!(by_loader.len(), by_mappings.len(), "{by_loader:?} {by_mappings:?}");
        // Paths may differ by links on the way.
        let bases = |all: &[(usize, String, bool, usize)]| -> Vec<_> {
            names(all)
                .into_iter()
                .map(|(base, _, is_executable, code)| (base, is_executable, code))
                .collect()
        };
        assert_eq!(bases(&by_loader), bases(&by_mappings));
    }
}
