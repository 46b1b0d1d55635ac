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

use std::ops::Range;

use immediate_arch::KnownText;

use crate::initial;
use crate::lock;
use crate::objects;
use crate::record::Header;
use crate::registry::Registry;
use crate::runtime;
use crate::update;

/// A loaded ELF object, as the dynamic loader describes it.
#[derive(Debug, Default)]
struct Object {
    path: String,
    base: usize,
    texts: Vec<KnownText>,
    /// All of its segments.
    loaded: Vec<Range<usize>>,
    is_executable: bool,
}

/// Registers a module, with the runtime of the process.
///
/// # Safety
///
/// M1.
pub unsafe extern "C" fn enter(header: *const Header) {
    // SAFETY: M1.
    unsafe {
        match runtime::foreign() {
            Some(there) => there.enter(header),
            None => enter_here(header),
        }
    }
}

/// Forgets a module.
///
/// # Safety
///
/// M1.
pub unsafe extern "C" fn leave(header: *const Header) {
    // SAFETY: M1.
    unsafe {
        match runtime::foreign() {
            Some(there) => there.leave(header),
            None => leave_here(header),
        }
    }
}

/// Registers a module with the runtime of this copy.
///
/// # Safety
///
/// M1.
pub(crate) unsafe extern "C" fn enter_here(header: *const Header) {
    // SAFETY: M1.
    let header: &'static Header = unsafe { &*header };
    exit::watch();
    // The loader is asked, and lines are reported, outside our lock (see `lock`).
    let object = find(std::ptr::from_ref(header).addr());
    let lines = match lock::lock() {
        Ok(mut locked) => register(locked.registry(), header, object, false),
        Err(_) => {
            let name = object.map(|object| object.name()).unwrap_or_default();
            vec![format!("{name} is not registered: a test by closure loaded it during a set")]
        }
    };
    lines.iter().for_each(|line| report(line));
}

/// Registers a module whose code may be running already; returns the lines to report.
///
/// # Safety
///
/// The module stays loaded meanwhile.
pub(crate) unsafe fn register_running(
    registry: &mut Registry,
    header: &'static Header,
) -> Vec<String> {
    register(registry, header, find(std::ptr::from_ref(header).addr()), true)
}

fn register(
    registry: &mut Registry,
    header: &'static Header,
    object: Option<Object>,
    is_running: bool,
) -> Vec<String> {
    let Some(object) = object else {
        let line = "a module registered that the dynamic loader does not know; it is left alone";
        return vec![line.to_string()];
    };
    let name = object.name();
    let tables = match header.tables(&object.loaded, &object.texts) {
        Ok(tables) => tables,
        Err(broken) => {
            registry.refuse(object.base, header, broken.to_string());
            return vec![format!(
                "{name} is not registered: {broken}; its variables keep their values and cannot be \
                 set"
            )];
        }
    };
    if registry.has_tables(&tables) {
        return Vec::new();
    }
    let (place, mut lines) =
        registry.add_module(header, name.clone(), object.base, tables, &object.texts);
    lines.extend(initial::apply(registry, place, object.is_executable));
    let stale = update::bring_up(registry, place, is_running);
    for error in &stale.errors {
        lines.push(format!("{name}: sites keep what was built in: {error}"));
    }
    if stale.is_fatal {
        // Safe code would follow an address that is 0. There is no way to go on, and no caller to
        // tell.
        lines.push(format!(
            "{name}: it has addresses or tests by closure, which were not known when it was built, \
             and its code cannot be changed here; build with --cfg immediate_no_patching"
        ));
        lines.iter().for_each(|line| report(line));
        std::process::abort();
    }
    lines
}

/// Forgets a module in the runtime of this copy.
///
/// # Safety
///
/// M1.
pub(crate) unsafe extern "C" fn leave_here(header: *const Header) {
    // SAFETY: M1.
    let header: &'static Header = unsafe { &*header };
    match find(std::ptr::from_ref(header).addr()) {
        // The executable is never unmapped; its threads may go on running until the process ends.
        Some(object) if object.is_executable => {}
        // At the end of the process nothing is unmapped, and threads may still run the sites.
        _ if exit::has_begun() => {}
        _ => {
            // Only `exit` in the middle of a set, by the thread that sets, finds its own lock.
            if let Ok(mut locked) = lock::lock() {
                locked.registry().remove_module(header);
            }
        }
    }
}

mod exit {
    //! Whether the process is ending: destructors of libraries run then without any unloading.

    use std::ffi::c_void;
    use std::ptr;
    use std::sync::Once;
    use std::sync::atomic::{AtomicBool, Ordering};

    static BEGUN: AtomicBool = AtomicBool::new(false);

    unsafe extern "C" {
        // Itanium C++ ABI, section 3.3.5: without an object of its own the function is called at
        // the end of the process, before the destructors of any library.
        fn __cxa_atexit(
            function: extern "C" fn(*mut c_void),
            argument: *mut c_void,
            object: *mut c_void,
        ) -> i32;
    }

    extern "C" fn begin(_: *mut c_void) {
        BEGUN.store(true, Ordering::Relaxed);
    }

    pub(super) fn watch() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: a function that lives as long as the process (`stay`), and no arguments.
            unsafe { __cxa_atexit(begin, ptr::null_mut(), ptr::null_mut()) };
        });
    }

    pub(super) fn has_begun() -> bool {
        BEGUN.load(Ordering::Relaxed)
    }
}

/// Keeps the library that holds this code, and with it the handlers and the state of this runtime,
/// loaded for good. The executable always is.
pub(crate) fn stay() {
    match find(own_address()) {
        Some(object) if !object.is_executable => {
            let Ok(path) = std::ffi::CString::new(object.path) else { return };
            let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
            // SAFETY: the library is loaded already: nothing is loaded, and no code runs.
            if unsafe { libc::dlopen(path.as_ptr(), flags) }.is_null() {
                report(&format!(
                    "{} cannot be kept loaded, although it holds the runtime: never unload it",
                    path.to_string_lossy()
                ));
            }
        }
        _ => {}
    }
}

fn own_address() -> usize {
    stay as fn() as usize
}

/// The path of the module that holds this code.
pub(crate) fn own_name() -> String {
    find(own_address()).map(|object| object.name()).unwrap_or_default()
}

/// Writes a line to standard error, in one piece and without its lock: a thread that holds that may
/// be waiting for one of ours.
pub(crate) fn report(line: &str) {
    let line = format!("immediate: {line}\n");
    // SAFETY: reads the line's own bytes. Where there is no standard error, nobody reads them.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
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

/// The object whose segments contain `address`.
fn find(address: usize) -> Option<Object> {
    if cfg!(miri) {
        return None; // The interpreter has no loader.
    }
    let mut found = None;
    objects::each(&mut |object| {
        let loaded: Vec<_> = object.ranges(libc::PT_LOAD).map(|(range, _)| range).collect();
        if !loaded.iter().any(|range| range.contains(&address)) {
            return true;
        }
        let page = page_size();
        let texts = object
            .ranges(libc::PT_LOAD)
            .filter(|(_, segment)| segment.p_flags & libc::PF_X != 0)
            .map(|(Range { start, end }, _)| KnownText {
                start: start & !(page - 1),
                end: end.next_multiple_of(page),
            });
        found = Some(Object {
            path: object.path.to_string(),
            base: object.base,
            texts: texts.collect(),
            loaded,
            is_executable: object.is_executable,
        });
        false
    });
    found
}

fn page_size() -> usize {
    // SAFETY: asks for a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).ok().filter(|size| size.is_power_of_two()).unwrap_or(4096)
}
