//! The functions by which other copies of this library, and modules written in C, use the runtime of
//! this one. `include/immediate.h` declares the same.
//!
//! # Invariants
//!
//! * `C1` A caller has found the interface by its note and has compared layout, size and kind of
//!   sites; it passes arguments as the types here say.
//! * `C2` What is passed by pointer lives during the call.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use immediate_arch::isa::imp;
use immediate_arch::{CHAIN, Failure, Outcome, Protocol, Reason, Rejected, RejectedWriter, Writer};

use super::note::{NONE, Prefix};
use crate::batch::Change;
use crate::config::{self, Config};
use crate::error::Error;
use crate::exchange::{Each, Sink, Text};
use crate::introspect::{self, Module, Site, SiteForm, Variable};
use crate::lock::{self, Setters};
use crate::module;
use crate::record::Header;
use crate::status::{self, Status};
use crate::update::{self, Mode};
use crate::variable::{Head, Untyped};

/// Version of everything below, of the descriptor, the head and the backing of a variable; changes
/// with any of them.
const LAYOUT: u32 = 1;

/// What a copy offers to all others.
#[repr(C)]
pub(crate) struct Interface {
    pub(super) prefix: Prefix,
    enter: unsafe extern "C" fn(*const Header),
    leave: unsafe extern "C" fn(*const Header),
    apply: unsafe extern "C" fn(*const c_void, *const Change<'_>, usize, u32, Sink) -> u32,
    lock: extern "C" fn(*mut *const c_void, Sink) -> u32,
    unlock: unsafe extern "C" fn(*const c_void),
    site_count: unsafe extern "C" fn(*const Head) -> usize,
    variables: extern "C" fn(Each<VariableRow>) -> u32,
    set_text: unsafe extern "C" fn(*const VariableKey, Text, Sink) -> u32,
    modules: extern "C" fn(Each<ModuleRow>),
    sites: extern "C" fn(Each<SiteRow>),
    status: extern "C" fn(Each<StatusRow>),
    configure: extern "C" fn(*const ConfigRow, Sink) -> u32,
    /// Whether the module at this load address was refused; the sink gets why.
    refusal: extern "C" fn(usize, Sink) -> u32,
}

// SAFETY: constants, and an atomic.
unsafe impl Sync for Interface {}

/// This copy's own.
pub(crate) static INTERFACE: Interface = Interface {
    prefix: Prefix {
        layout: LAYOUT,
        size: size_of::<Interface>() as u32,
        sites: padded(imp::NAME),
        version: padded(env!("CARGO_PKG_VERSION")),
        state: AtomicU32::new(NONE),
        chain: &CHAIN,
    },
    enter: module::enter_here,
    leave: module::leave_here,
    apply: apply_here,
    lock: lock_here,
    unlock: unlock_here,
    site_count: site_count_here,
    variables: variables_here,
    set_text: set_text_here,
    modules: modules_here,
    sites: sites_here,
    status: status_here,
    configure: configure_here,
    refusal: refusal_here,
};

const fn padded(text: &str) -> [u8; 16] {
    let (text, mut bytes, mut place) = (text.as_bytes(), [0; 16], 0);
    while place < text.len() && place < bytes.len() {
        bytes[place] = text[place];
        place += 1;
    }
    bytes
}

/// Answers of the functions that set.
const DONE: u32 = 0;
const NOT_SINGLE_THREADED: u32 = 1;
const WITHIN_UPDATE: u32 = 2;
const CONFIGURED_TOO_LATE: u32 = 3;
/// The rest, of which the text tells.
const OTHER: u32 = 4;

/// The answer for the other side; its text goes into the sink.
fn answer(result: Result<(), Error>, sink: Sink) -> u32 {
    let Err(error) = result else { return DONE };
    sink.put_all(&error);
    match error {
        Error::NotSingleThreaded => NOT_SINGLE_THREADED,
        Error::WithinUpdate => WITHIN_UPDATE,
        Error::ConfiguredTooLate => CONFIGURED_TOO_LATE,
        _ => OTHER,
    }
}

/// What the other side answered.
fn understand(call: impl FnOnce(Sink) -> u32) -> Result<(), Error> {
    let (answer, text) = Sink::collect(call);
    Err(match answer {
        DONE => return Ok(()),
        NOT_SINGLE_THREADED => Error::NotSingleThreaded,
        WITHIN_UPDATE => Error::WithinUpdate,
        CONFIGURED_TOO_LATE => Error::ConfiguredTooLate,
        _ => Error::Elsewhere { text },
    })
}

/// Names a variable of a listing.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct VariableKey {
    place: usize,
    name: Text,
    file: Text,
    line: u32,
}

/// One variable, as it is listed.
#[repr(C)]
pub(crate) struct VariableRow {
    key: VariableKey,
    doc: Text,
    type_name: Text,
    initial: Text,
    value: Text,
    module: Text,
    column: u32,
    is_shared: u32,
    sites: usize,
    updates: u64,
}

/// One module.
#[repr(C)]
pub(crate) struct ModuleRow {
    path: Text,
    base: usize,
    variables: usize,
    sites: usize,
}

/// One site; `form` is 0 for a value, 1 and 2 for a branch taken on true and on false.
#[repr(C)]
pub(crate) struct SiteRow {
    variable: Text,
    module: Text,
    address: usize,
    base: usize,
    form: usize,
    target: usize,
    test: Text,
}

/// The status; what is empty does not exist. Reasons are a line each, `name: reason`.
#[repr(C)]
pub(crate) struct StatusRow {
    protocol: Text,
    writer: Text,
    rejected: Text,
    rejected_writers: Text,
    refusal: Text,
    one_instant: u32,
    left_writable: i32,
    modules: usize,
    variables: usize,
    sites: usize,
    updates: u64,
    last_protocol: Text,
    last_writer: Text,
    last_sites: usize,
    last_trapping: usize,
}

/// The configuration; a text that is empty and a number below 0 leave the choice.
#[repr(C)]
pub(crate) struct ConfigRow {
    protocol: Text,
    writer: Text,
    stop_signal: i32,
    one_instant: u32,
    stop_within_nanoseconds: i64,
}

unsafe extern "C" fn apply_here(
    held: *const c_void,
    changes: *const Change<'_>,
    count: usize,
    mode: u32,
    sink: Sink,
) -> u32 {
    let changes = if count == 0 {
        &[]
    } else {
        // SAFETY: C1, C2.
        unsafe { std::slice::from_raw_parts(changes, count) }
    };
    let mode = if mode == 0 { Mode::Live } else { Mode::Early };
    // SAFETY: C1; from `lock_here`, and not yet unlocked.
    let result = match unsafe { held.cast::<Setters>().as_ref() } {
        Some(setters) => setters
            .registry()
            .and_then(|mut locked| update::apply(locked.registry(), changes, mode)),
        None => lock::setters()
            .and_then(|setters| update::apply(setters.registry()?.registry(), changes, mode)),
    };
    answer(result, sink)
}

extern "C" fn lock_here(held: *mut *const c_void, sink: Sink) -> u32 {
    let result = lock::setters().map(|setters| {
        let setters = Box::into_raw(Box::new(setters));
        // SAFETY: C2.
        unsafe { *held = setters.cast_const().cast() };
    });
    answer(result, sink)
}

unsafe extern "C" fn unlock_here(held: *const c_void) {
    // SAFETY: C1; from `lock_here`, once.
    drop(unsafe { Box::from_raw(held.cast::<Setters>().cast_mut()) });
}

unsafe extern "C" fn site_count_here(variable: *const Head) -> usize {
    // SAFETY: C1, C2.
    let variable = unsafe { Untyped::from_address(variable) };
    let count = |variable| super::site_count(variable);
    variable.map_or(0, count)
}

extern "C" fn variables_here(each: Each<VariableRow>) -> u32 {
    let Ok(list) = introspect::list_here() else { return WITHIN_UPDATE };
    for variable in &list {
        each.put(&VariableRow {
            key: key_of(variable),
            doc: Text::new(&variable.doc),
            type_name: Text::new(&variable.type_name),
            initial: Text::new(&variable.initial),
            value: Text::new(&variable.value),
            module: Text::new(&variable.module),
            column: variable.column,
            is_shared: variable.is_shared.into(),
            sites: variable.sites,
            updates: variable.updates,
        });
    }
    DONE
}

fn key_of(variable: &Variable) -> VariableKey {
    VariableKey {
        place: variable.place,
        name: Text::new(&variable.name),
        file: Text::new(&variable.file),
        line: variable.line,
    }
}

unsafe extern "C" fn set_text_here(key: *const VariableKey, text: Text, sink: Sink) -> u32 {
    // SAFETY: C1, C2.
    let (key, text) = unsafe { (&*key, text.get()) };
    // SAFETY: C2.
    let (name, file) = unsafe { (key.name.get(), key.file.get()) };
    answer(introspect::set_text_here(key.place, name, file, key.line, text), sink)
}

extern "C" fn modules_here(each: Each<ModuleRow>) {
    for Module { path, base, variables, sites } in &introspect::modules_here() {
        let (base, variables, sites) = (*base, *variables, *sites);
        each.put(&ModuleRow { path: Text::new(path), base, variables, sites });
    }
}

extern "C" fn sites_here(each: Each<SiteRow>) {
    for Site { variable, module, address, base, form } in &introspect::sites_here() {
        let (form, target, test) = match form {
            SiteForm::Value => (0, 0, ""),
            SiteForm::Branch { target, test, taken_on } => {
                (if *taken_on { 1 } else { 2 }, *target, test.as_str())
            }
        };
        each.put(&SiteRow {
            variable: Text::new(variable),
            module: Text::new(module),
            address: *address,
            base: *base,
            form,
            target,
            test: Text::new(test),
        });
    }
}

extern "C" fn status_here(each: Each<StatusRow>) {
    let status = status::here();
    let lines = |lines: Vec<String>| lines.join("\n");
    let rejected = status.rejected.iter().map(|one| format!("{}: {}", one.protocol, one.reason));
    let rejected = lines(rejected.collect());
    let writers = status.rejected_writers.iter();
    let writers = lines(writers.map(|one| format!("{}: {}", one.writer, one.reason)).collect());
    let refusal = status.refusal.as_ref().map(ToString::to_string).unwrap_or_default();
    let last = status.last.as_ref();
    each.put(&StatusRow {
        protocol: Text::new(status.protocol.map_or("", Protocol::name)),
        writer: Text::new(status.writer.map_or("", Writer::name)),
        rejected: Text::new(&rejected),
        rejected_writers: Text::new(&writers),
        refusal: Text::new(&refusal),
        one_instant: status.one_instant.into(),
        left_writable: last.and_then(|last| last.left_writable.as_ref()).map_or(0, |one| one.errno),
        modules: status.modules,
        variables: status.variables,
        sites: status.sites,
        updates: status.updates,
        last_protocol: Text::new(last.map_or("", |last| last.protocol.name())),
        last_writer: Text::new(last.map_or("", |last| last.writer.name())),
        last_sites: last.map_or(0, |last| last.sites),
        last_trapping: last.map_or(0, |last| last.trapping),
    });
}

extern "C" fn configure_here(row: *const ConfigRow, sink: Sink) -> u32 {
    // SAFETY: C1, C2.
    let row = unsafe { &*row };
    // SAFETY: C2.
    let (protocol, writer) = unsafe { (row.protocol.get(), row.writer.get()) };
    let within = u64::try_from(row.stop_within_nanoseconds).ok().map(Duration::from_nanos);
    let config = Config {
        protocol: protocol_named(protocol),
        writer: writer_named(writer),
        stop_signal: (row.stop_signal >= 0).then_some(row.stop_signal),
        stop_within: within,
        one_instant: row.one_instant != 0,
    };
    answer(config::configure_here(config), sink)
}

extern "C" fn refusal_here(base: usize, sink: Sink) -> u32 {
    let Ok(mut locked) = lock::lock() else { return 0 };
    let Some(why) = locked.registry().refusal(base) else { return 0 };
    sink.put(why);
    1
}

fn protocol_named(name: &str) -> Option<Protocol> {
    let mut all = Protocol::CHOICES.iter().chain(&[Protocol::Single]);
    all.find(|one| one.name() == name).copied()
}

fn writer_named(name: &str) -> Option<Writer> {
    Writer::ALL.iter().find(|one| one.name() == name).copied()
}

/// The setters' lock of another copy, held.
pub(crate) struct Lock {
    there: &'static Interface,
    held: *const c_void,
}

impl Lock {
    /// Sets all of `changes`, or none.
    pub(crate) fn apply(&self, changes: &[Change<'_>]) -> Result<(), Error> {
        self.there.apply(NonNull::new(self.held.cast_mut()), changes, Mode::Live)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // SAFETY: C1; taken by `lock`.
        unsafe { (self.there.unlock)(self.held) };
    }
}

// The calls that this copy makes when the runtime is another's. SAFETY of all: C1 was checked when it
// was chosen, C2 holds by the borrows.
impl Interface {
    /// # Safety
    ///
    /// As for [`module::enter`].
    pub(crate) unsafe fn enter(&self, header: *const Header) {
        // SAFETY: by the caller.
        unsafe { (self.enter)(header) };
    }

    /// # Safety
    ///
    /// As for [`module::leave`].
    pub(crate) unsafe fn leave(&self, header: *const Header) {
        // SAFETY: by the caller.
        unsafe { (self.leave)(header) };
    }

    pub(crate) fn apply(
        &self,
        held: Option<NonNull<c_void>>,
        changes: &[Change<'_>],
        mode: Mode,
    ) -> Result<(), Error> {
        let held = held.map_or(ptr::null(), |held| held.as_ptr().cast_const());
        let mode = u32::from(mode == Mode::Early);
        understand(|sink| {
            // SAFETY: see above.
            unsafe { (self.apply)(held, changes.as_ptr(), changes.len(), mode, sink) }
        })
    }

    pub(crate) fn lock(&'static self) -> Result<Lock, Error> {
        let mut held = ptr::null();
        understand(|sink| (self.lock)(&raw mut held, sink))?;
        Ok(Lock { there: self, held })
    }

    pub(crate) fn site_count(&self, variable: Untyped<'_>) -> usize {
        // SAFETY: see above.
        unsafe { (self.site_count)(&raw const *variable) }
    }

    pub(crate) fn variables(&self) -> Result<Vec<Variable>, Error> {
        let (answer, list) = Each::collect(
            |each| (self.variables)(each),
            |row: &VariableRow| {
                // SAFETY: C2.
                let text = |text: Text| unsafe { text.get() }.to_string();
                Variable {
                    place: row.key.place,
                    name: text(row.key.name),
                    doc: text(row.doc),
                    type_name: text(row.type_name),
                    initial: text(row.initial),
                    value: text(row.value),
                    file: text(row.key.file),
                    line: row.key.line,
                    column: row.column,
                    is_shared: row.is_shared != 0,
                    module: text(row.module),
                    sites: row.sites,
                    updates: row.updates,
                }
            },
        );
        if answer == DONE { Ok(list) } else { Err(Error::WithinUpdate) }
    }

    pub(crate) fn set_text(&self, variable: &Variable, text: &str) -> Result<(), Error> {
        let key = key_of(variable);
        // SAFETY: see above.
        understand(|sink| unsafe { (self.set_text)(&raw const key, Text::new(text), sink) })
    }

    pub(crate) fn modules(&self) -> Vec<Module> {
        let ((), list) = Each::collect(
            |each| (self.modules)(each),
            |row: &ModuleRow| Module {
                // SAFETY: C2.
                path: unsafe { row.path.get() }.to_string(),
                base: row.base,
                variables: row.variables,
                sites: row.sites,
            },
        );
        list
    }

    pub(crate) fn sites(&self) -> Vec<Site> {
        let ((), list) = Each::collect(
            |each| (self.sites)(each),
            |row: &SiteRow| {
                // SAFETY: C2.
                let text = |text: Text| unsafe { text.get() }.to_string();
                let form = match row.form {
                    0 => SiteForm::Value,
                    form => SiteForm::Branch {
                        target: row.target,
                        test: text(row.test),
                        taken_on: form == 1,
                    },
                };
                Site {
                    variable: text(row.variable),
                    module: text(row.module),
                    address: row.address,
                    base: row.base,
                    form,
                }
            },
        );
        list
    }

    pub(crate) fn status(&self) -> Option<Status> {
        let ((), mut list) = Each::collect(
            |each| (self.status)(each),
            |row: &StatusRow| {
                // SAFETY: C2.
                let text = |text: Text| unsafe { text.get() }.to_string();
                let reasons = |lines: Text| -> Vec<(String, Reason)> {
                    let lines = text(lines);
                    let pairs = lines.lines().filter_map(|line| line.split_once(": "));
                    pairs
                        .map(|(name, reason)| (name.to_string(), Reason::Told(reason.to_string())))
                        .collect()
                };
                let rejected_writers: Vec<_> = reasons(row.rejected_writers)
                    .into_iter()
                    .filter_map(|(name, reason)| {
                        Some(RejectedWriter { writer: writer_named(&name)?, reason })
                    })
                    .collect();
                let refusal = text(row.refusal);
                let last = protocol_named(&text(row.last_protocol));
                let last = last.zip(writer_named(&text(row.last_writer)));
                Status {
                    target: imp::NAME,
                    protocol: protocol_named(&text(row.protocol)),
                    writer: writer_named(&text(row.writer)),
                    one_instant: row.one_instant != 0,
                    rejected: reasons(row.rejected)
                        .into_iter()
                        .filter_map(|(name, reason)| {
                            Some(Rejected { protocol: protocol_named(&name)?, reason })
                        })
                        .collect(),
                    rejected_writers,
                    refusal: (!refusal.is_empty()).then_some(Error::Elsewhere { text: refusal }),
                    modules: row.modules,
                    variables: row.variables,
                    sites: row.sites,
                    updates: row.updates,
                    last: last.map(|(protocol, writer)| Outcome {
                        protocol,
                        writer,
                        rejected: Vec::new(),
                        rejected_writers: Vec::new(),
                        sites: row.last_sites,
                        trapping: row.last_trapping,
                        left_writable: (row.left_writable != 0).then_some(Failure {
                            call: "mprotect(text, RX)",
                            errno: row.left_writable,
                        }),
                    }),
                }
            },
        );
        list.pop()
    }

    #[cfg(all(feature = "plugin", unix))]
    pub(crate) fn refusal(&self, base: usize) -> Option<String> {
        let (is_refused, why) = Sink::collect(|sink| (self.refusal)(base, sink));
        (is_refused != 0).then_some(why)
    }

    pub(crate) fn configure(&self, config: &Config) -> Result<(), Error> {
        let within = config.stop_within.map(|time| i64::try_from(time.as_nanos()));
        let row = ConfigRow {
            protocol: Text::new(config.protocol.map_or("", Protocol::name)),
            writer: Text::new(config.writer.map_or("", Writer::name)),
            stop_signal: config.stop_signal.unwrap_or(-1),
            one_instant: config.one_instant.into(),
            stop_within_nanoseconds: within.map_or(-1, |time| time.unwrap_or(i64::MAX)),
        };
        understand(|sink| (self.configure)(&raw const row, sink))
    }
}
