//! The door through which modules come and go.
//!
//! Every object file with a site or a variable carries a constructor and a destructor (see
//! `immediate_arch::isa`); of all copies in a module one stays. They call [`enter`] before any
//! other code of the module, and [`leave`] after it.
//!
//! # Invariants
//!
//! * `M1` The caller is the constructor or destructor of the module in which the header lies: the
//!   module is loaded from before `enter` until after `leave`, and no other of its code runs
//!   outside that time.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};

use immediate_arch::KnownText;

use crate::initial;
use crate::lock;
use crate::record::Header;
use crate::update;

/// A loaded ELF object, as the dynamic loader describes it.
#[derive(Debug, Default)]
struct Object {
    path: String,
    base: usize,
    texts: Vec<KnownText>,
    is_executable: bool,
}

/// Registers a module.
///
/// # Safety
///
/// M1.
pub unsafe extern "C" fn enter(header: *const Header) {
    // SAFETY: M1.
    let header: &'static Header = unsafe { &*header };
    lock::watch_fork();
    // The loader is asked before our lock is taken: it holds its own lock while it calls us.
    let Some(object) = find(std::ptr::from_ref(header).addr()) else {
        report("a module registered that the dynamic loader does not know; it is left alone");
        return;
    };
    let name = object.name();
    let tables = match header.tables() {
        Ok(tables) => tables,
        Err(broken) => {
            report(&format!("{name} is not registered: {broken}; its variables keep their values"));
            return;
        }
    };
    let Ok(mut locked) = lock::lock() else {
        report(&format!("{name} is not registered: it was loaded while a variable was being set"));
        return;
    };
    let registry = locked.registry();
    let place = registry.add_module(header, name.clone(), object.base, tables, &object.texts);
    for line in initial::apply(registry, place, object.is_executable) {
        report(&line);
    }
    if let Err(error) = update::bring_up(registry, place) {
        report(&format!("{name}: its sites keep the built-in values: {error}"));
    }
}

/// Forgets a module.
///
/// # Safety
///
/// M1.
pub unsafe extern "C" fn leave(header: *const Header) {
    // SAFETY: M1.
    let header: &'static Header = unsafe { &*header };
    match find(std::ptr::from_ref(header).addr()) {
        // The executable is never unmapped; its threads may go on running until the process ends.
        Some(object) if object.is_executable => {}
        _ => {
            // Only `exit` in the middle of a set, by the thread that sets, finds its own lock.
            if let Ok(mut locked) = lock::lock() {
                locked.registry().remove_module(header);
            }
        }
    }
}

pub(crate) fn report(line: &str) {
    use std::io::Write;
    // Not `eprintln!`, which panics where there is no standard error.
    let _ = writeln!(std::io::stderr(), "immediate: {line}");
}

impl Object {
    fn name(&self) -> String {
        if self.path.is_empty() {
            let own = std::env::current_exe().map(|path| path.display().to_string());
            return own.unwrap_or_else(|_| "the executable".into());
        }
        self.path.clone()
    }
}

struct Search {
    address: usize,
    seen: usize,
    found: Option<Object>,
}

/// The object whose segments contain `address`.
fn find(address: usize) -> Option<Object> {
    let mut search = Search { address, seen: 0, found: None };
    // SAFETY: the callback gets this search back, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: `dl_iterate_phdr` passes a description that is valid during the call, and our search.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    search.seen += 1;
    // SAFETY: the loader's own table of program headers.
    let headers =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let base = info.dlpi_addr as usize;
    let loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD).map(|header| {
        let start = base.wrapping_add(header.p_vaddr as usize);
        (start, start.wrapping_add(header.p_memsz as usize), header.p_flags)
    });
    if !loaded.clone().any(|(start, end, _)| (start..end).contains(&search.address)) {
        return 0;
    }
    let page = page_size();
    let texts = loaded.filter(|(_, _, flags)| flags & libc::PF_X != 0).map(|(start, end, _)| {
        KnownText { start: start & !(page - 1), end: end.next_multiple_of(page) }
    });
    let path = if info.dlpi_name.is_null() {
        String::new()
    } else {
        // SAFETY: the loader's own name of the object.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy().into_owned()
    };
    search.found = Some(Object {
        path,
        base,
        texts: texts.collect(),
        // The first object is the program (`dl_iterate_phdr(3)`).
        is_executable: search.seen == 1,
    });
    1
}

fn page_size() -> usize {
    // SAFETY: asks for a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).ok().filter(|size| size.is_power_of_two()).unwrap_or(4096)
}
