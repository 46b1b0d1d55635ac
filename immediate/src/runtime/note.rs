//! The notes by which copies of this library find each other, and modules written in C are found.
//!
//! An ELF note with the name `immediate` lies in a segment of its kind, which the dynamic loader
//! shows for every loaded object (`dl_iterate_phdr(3)`): also of a stripped file, and without any
//! exported symbol. What it describes is the distance, from the description itself, of
//!
//! | type | what |
//! | --- | --- |
//! | 1 | the [`Interface`] of a copy |
//! | 2 | a word, 1 once the module has asked to be registered, and behind it the distance of its header |
//!
//! # Invariants
//!
//! * `N1` A note of these types describes an object of its own module. While the loader shows a
//!   module, it is mapped. The first words of an interface are integers that no relocation changes,
//!   so that they can be read before the loader is done with the module; functions and texts of an
//!   interface are read only when its state is [`OWNS`], which its own code has written.

use std::sync::atomic::AtomicU32;

use immediate_arch::Chain;

use super::interface::Interface;

/// The states of a copy: it does not own the runtime, it would, it does.
pub(super) const NONE: u32 = 0;
pub(super) const PROPOSED: u32 = 1;
pub(super) const OWNS: u32 = 2;

/// What a copy sees of the others.
#[derive(Default)]
pub(super) struct Found {
    pub(super) owner: Option<&'static Interface>,
    /// Whether a copy before, or behind, it in the loader's order proposes itself.
    pub(super) has_earlier: bool,
    pub(super) has_later: bool,
    /// Owners of another kind, with a few words on each.
    pub(super) strangers: Vec<(&'static Prefix, String)>,
}

/// The first words of every interface: the same in all versions.
#[repr(C)]
pub(crate) struct Prefix {
    /// Version of the interface.
    pub(super) layout: u32,
    /// Bytes of the whole interface.
    pub(super) size: u32,
    /// The kind of sites: copies that patch and copies that load do not go together.
    pub(super) sites: [u8; 16],
    /// The version of the crate.
    pub(super) version: [u8; 16],
    /// One of the states above.
    pub(super) state: AtomicU32,
    /// The trap handler; read only of an owner.
    pub(super) chain: &'static Chain,
}

impl Prefix {
    /// What decides whether two copies go together.
    pub(super) fn describe(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_string();
        let (version, sites) = (text(&self.version), text(&self.sites));
        format!("version {version} of this library (interface {}, sites {sites})", self.layout)
    }
}

immediate_arch::isa::records::select! {
    {
        pub(super) use elf::{look, waiting_modules};
    }
    {
        /// No notes here: a copy is alone.
        pub(super) fn look(_: &Interface) -> Found {
            Found::default()
        }

        /// Nor modules in C.
        pub(super) fn waiting_modules() -> Vec<&'static crate::record::Header> {
            Vec::new()
        }
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
mod elf {
    use std::ptr;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::super::interface::{INTERFACE, Interface};
    use super::{Found, OWNS, PROPOSED, Prefix};
    use crate::objects;
    use crate::record::Header;

    /// What a module written in C asks by its note.
    #[repr(C)]
    struct Asking {
        is_asking: AtomicU32,
        header: i32,
    }

    const NAME: &[u8] = b"immediate\0";
    const INTERFACE_NOTE: u32 = 1;
    const MODULE_NOTE: u32 = 2;

    /// Puts this copy's note into whatever links it: called, so that it is kept.
    #[inline(never)]
    fn carry_note() {
        // SAFETY: emits data; no instruction stands here.
        unsafe {
            std::arch::asm!(
                ".pushsection .note.immediate,\"aR\",@note",
                ".balign 4",
                ".long 10",
                ".long 4",
                ".long 1",
                ".asciz \"immediate\"",
                ".balign 4",
                ".long {interface} - .",
                ".popsection",
                interface = sym INTERFACE,
                options(nomem, nostack, preserves_flags),
            );
        }
    }

    /// Looks at all other copies.
    pub(in crate::runtime) fn look(own: &Interface) -> Found {
        carry_note();
        let (mut found, mut is_behind) = (Found::default(), false);
        each_note(&mut |kind, described, path| {
            if kind != INTERFACE_NOTE {
                return;
            }
            let interface = resolve(described) as *const Interface;
            if ptr::eq(interface, own) {
                is_behind = true;
                return;
            }
            // SAFETY: N1.
            let prefix = unsafe { &*interface.cast::<Prefix>() };
            let state = prefix.state.load(Ordering::SeqCst);
            if prefix.layout != own.prefix.layout
                || prefix.size != own.prefix.size
                || prefix.sites != own.prefix.sites
            {
                if state == OWNS {
                    let words = format!("{path} has {}", prefix.describe());
                    found.strangers.push((prefix, words));
                }
                return;
            }
            // SAFETY: N1; of the same layout.
            let other = unsafe { &*interface };
            match state {
                OWNS => found.owner = Some(other),
                PROPOSED if is_behind => found.has_later = true,
                PROPOSED => found.has_earlier = true,
                _ => {}
            }
        });
        found
    }

    /// The headers of modules that came before any runtime.
    pub(in crate::runtime) fn waiting_modules() -> Vec<&'static Header> {
        let mut headers = Vec::new();
        each_note(&mut |kind, described, _| {
            if kind == MODULE_NOTE {
                // SAFETY: N1.
                let asking = unsafe { &*(resolve(described) as *const Asking) };
                if asking.is_asking.load(Ordering::SeqCst) != 0 {
                    let header = resolve(&raw const asking.header) as *const Header;
                    // SAFETY: N1.
                    headers.push(unsafe { &*header });
                }
            }
        });
        headers
    }

    /// The address that lies the distance at `field` from `field`.
    fn resolve(field: *const i32) -> usize {
        // SAFETY: N1; a description of four bytes, at its alignment.
        field.addr().wrapping_add_signed(unsafe { *field } as isize)
    }

    /// Calls for each of our notes of every module: type, description, path of the module.
    type OnNote<'a> = &'a mut dyn FnMut(u32, *const i32, &str);

    fn each_note(call: OnNote<'_>) {
        objects::each(&mut |object| {
            for (range, segment) in object.ranges(libc::PT_NOTE) {
                if !range.start.is_multiple_of(4) {
                    continue;
                }
                // SAFETY: N1; the notes of a module are mapped with it.
                let bytes =
                    unsafe { std::slice::from_raw_parts(range.start as *const u8, range.len()) };
                let align = if segment.p_align == 8 { 8 } else { 4 };
                let path = if object.path.is_empty() { "the executable" } else { object.path };
                notes(bytes, align, |kind, described| {
                    call(kind, described.as_ptr().cast(), path);
                });
            }
            true
        });
    }

    /// Goes through notes (ELF, "Note Section"); calls for ours, with type and description.
    pub(super) fn notes(bytes: &[u8], align: usize, mut call: impl FnMut(u32, &[u8])) {
        let mut rest = bytes;
        while let Some((head, behind)) = rest.split_first_chunk::<12>() {
            let word = |n: usize| {
                u32::from_ne_bytes(head[4 * n..4 * n + 4].try_into().expect("four bytes")) as usize
            };
            let (name_size, size) = (word(0), word(1));
            // Padding is counted from the beginning of the note.
            let start = (12 + name_size).next_multiple_of(align);
            let Some(end) = start.checked_add(size) else { return };
            let (Some(name), Some(described)) = (behind.get(..name_size), rest.get(start..end))
            else {
                return;
            };
            if name == NAME && size == 4 {
                call(word(2) as u32, described);
            }
            rest = rest.get(end.next_multiple_of(align)..).unwrap_or_default();
        }
    }

    #[cfg(test)]
    mod tests {
        use super::notes;

        #[test]
        fn finds_ours_among_others_and_in_what_is_cut_short() {
            let mut bytes = Vec::new();
            for (name, kind, described) in [
                ("GNU\0", 3, &[1_u8; 20][..]),
                ("immediate\0", 1, &[7, 0, 0, 0]),
                ("immediate\0", 2, &[8, 0, 0, 0]),
            ] {
                for word in [name.len() as u32, described.len() as u32, kind] {
                    bytes.extend(word.to_ne_bytes());
                }
                bytes.extend(name.as_bytes());
                bytes.resize(bytes.len().next_multiple_of(4), 0);
                bytes.extend(described);
            }
            let found = |bytes: &[u8]| {
                let mut all = Vec::new();
                notes(bytes, 4, |kind, described| all.push((kind, described[0])));
                all
            };
            assert_eq!(found(&bytes), [(1, 7), (2, 8)]);
            assert_eq!(found(&bytes[..bytes.len() - 1]), [(1, 7)]);
            assert_eq!(found(&[0xff; 64]), []);
        }
    }
}
