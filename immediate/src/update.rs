//! Setting variables: from new values to a batch of pokes, whole or not at all.

#![allow(unsafe_code)]

use std::ops::Range;
use std::slice;

use immediate_arch::isa::imp;
use immediate_arch::{Mismatch, Patcher, Poke};

use crate::batch::Change;
use crate::config;
use crate::descriptor::Descriptor;
use crate::error::Error;
use crate::record::{Branch, Form, Site, SiteIndex, Tables, Test};
use crate::registry::{EntryId, Module, Registry};

/// Who may be running the sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Any thread.
    Live,
    /// Nobody but the caller; refused if that is not so.
    Early,
}

/// Sets all of `changes`, or none. The last change of a variable counts.
pub(crate) fn apply(
    registry: &mut Registry,
    changes: &[Change<'_>],
    mode: Mode,
) -> Result<(), Error> {
    for change in changes.iter().filter(|change| change.can_have_sites()) {
        // Its sites, if it has any, would not follow.
        if registry.entry_of(change.variable).is_none()
            && let Some(descriptor) = change.variable.descriptor
        {
            return Err(Error::Unregistered { variable: descriptor.name().to_string() });
        }
    }
    let mut touched = Vec::with_capacity(changes.len());
    for change in changes {
        if let Some(id) = registry.entry_of(change.variable)
            && let Some(entry) = registry.entry_mut(id)
        {
            if entry.pending.is_none() {
                touched.push(id);
            }
            entry.pending = Some(change.bits());
        }
    }
    let result = carry_out(registry, &touched, changes, mode);
    for id in touched {
        if let Some(entry) = registry.entry_mut(id) {
            entry.pending = None;
            entry.updates += u64::from(result.is_ok());
        }
    }
    if result.is_ok() {
        registry.updates += 1;
        registry.has_been_set = true;
    }
    result
}

fn carry_out(
    registry: &mut Registry,
    touched: &[EntryId],
    changes: &[Change<'_>],
    mode: Mode,
) -> Result<(), Error> {
    config::settle(registry);
    let (mut pokes, mut copies) = (Vec::new(), Vec::new());
    for id in touched {
        registry.prepare_texts(*id)?;
        let entry = registry.entry(*id).expect("touched above");
        if let Some((_, error)) = &entry.stale {
            return Err(error.clone());
        }
        let (old, new) = (entry.bits(), entry.pending.expect("touched above"));
        if entry.is_shared_now() {
            copies.extend(entry.declarations().map(|one| Change::of_declaration(&one, new)));
        }
        if old == new {
            continue;
        }
        pokes.reserve(entry.site_count());
        let state = State::new(entry.descriptor, Some(old), new);
        for (module, sites) in registry.runs_of(entry) {
            add_pokes(&registry.patcher, module, sites, &state, &mut pokes)
                .map_err(|mismatch| site_error(entry.descriptor, mismatch))?;
        }
    }
    // A value that no site reads needs no code to change, so no protocol either. It is refused all
    // the same where `set_early` must refuse.
    let commit = || changes.iter().chain(&copies).for_each(Change::commit);
    if pokes.is_empty() {
        if mode == Mode::Early && !registry.patcher.is_alone() {
            return Err(Error::NotSingleThreaded);
        }
        commit();
        return Ok(());
    }
    // SAFETY: every poke comes from `add_pokes`, which made it from the bytes of a site that its record
    // describes, in the text of a module that is registered.
    let outcome = unsafe {
        match mode {
            Mode::Live => registry.patcher.apply(&mut pokes, commit),
            Mode::Early => registry.patcher.apply_early(&mut pokes, commit),
        }
    }?;
    registry.last = Some(outcome);
    Ok(())
}

/// What could not be brought up to date in a module that is being loaded.
#[derive(Debug, Default)]
pub(crate) struct Stale {
    /// Why, a line each.
    pub(crate) errors: Vec<Error>,
    /// Whether code would go wrong that reads the sites as they are: an address that is still 0, a
    /// test that was never evaluated.
    pub(crate) is_fatal: bool,
}

/// Brings the sites of a module that is being loaded up to date: what the built file could not
/// hold, and variables that were set before the module came.
///
/// Where it fails, a variable whose built-in value is good keeps it at its sites, and setting it is
/// refused from then on.
///
/// `is_running` says that threads may be running the module already.
pub(crate) fn bring_up(registry: &mut Registry, place: usize, is_running: bool) -> Stale {
    let mut stale = Stale::default();
    config::settle(registry);
    let (mut pokes, mut changed, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    let mut essential = false;
    for (id, entry) in registry.entries() {
        let current = entry.bits();
        let is_pointer = entry.descriptor.is_pointer();
        let mut state = State::new(entry.descriptor, None, current);
        let before = pokes.len();
        let Some((module, run)) = registry.run_in(entry, place) else { continue };
        for &index in run {
            if entry.is_shared_now()
                && let Some(built) = module.tables.variable(index).and_then(|one| one.descriptor)
            {
                // Each declaration has been built with an initial value of its own.
                state = State::new(built, None, current);
            }
            if state.from != state.to || is_pointer || Tables::is_test(index) {
                let sites = slice::from_ref(&index);
                let added = add_pokes(&registry.patcher, module, sites, &state, &mut pokes);
                if let Err(mismatch) = added {
                    let error = site_error(entry.descriptor, mismatch);
                    stale.is_fatal |= is_pointer || Tables::is_test(index);
                    wrong.push((id, error.clone()));
                    stale.errors.push(error);
                } else {
                    essential |= pokes.len() > before && (is_pointer || Tables::is_test(index));
                }
            }
        }
        if pokes.len() > before {
            changed.push(id);
        }
    }
    let mut result = changed.iter().try_for_each(|id| registry.prepare_texts(*id));
    if !pokes.is_empty() && result.is_ok() {
        let patcher = &mut registry.patcher;
        // SAFETY: as in `carry_out`; unless it is running, the loader has not let any thread into the
        // module yet, and its constructors come after ours.
        let outcome = unsafe {
            if is_running {
                patcher.apply(&mut pokes, || ()).map(|_| ())
            } else {
                patcher.apply_unseen(&mut pokes)
            }
        };
        result = outcome.map_err(Error::from);
    }
    if let Err(error) = result {
        wrong.extend(changed.into_iter().map(|id| (id, error.clone())));
        stale.errors.push(error);
        stale.is_fatal |= essential;
    }
    for (id, error) in wrong {
        if let Some(entry) = registry.entry_mut(id) {
            entry.stale = Some((place, error));
        }
    }
    stale
}

#[cold]
#[allow(clippy::boxed_local)] // as it comes
fn site_error(descriptor: &Descriptor, mismatch: Box<Mismatch>) -> Error {
    Error::Site { variable: descriptor.name().to_string(), mismatch: *mismatch }
}

/// What a variable's sites hold and what they shall.
struct State {
    descriptor: &'static Descriptor,
    /// Whether they are as in the built file.
    is_built: bool,
    from: u64,
    to: u64,
}

impl State {
    /// `from` is `None` for what the built file holds.
    fn new(descriptor: &'static Descriptor, from: Option<u128>, to: u128) -> Self {
        let is_built = from.is_none();
        // A variable with sites has at most eight bytes.
        let (from, to) = (from.unwrap_or_else(|| descriptor.built_in()) as u64, to as u64);
        State { descriptor, is_built, from, to }
    }
}

/// Adds the changes of sites in one module; nothing for those whose instruction stays.
fn add_pokes(
    patcher: &Patcher,
    module: &Module,
    sites: &[SiteIndex],
    state: &State,
    pokes: &mut Vec<Poke>,
) -> Result<(), Box<Mismatch>> {
    // The outcome of a `bool` is the `bool`.
    let (before, after) = (state.from != 0, state.to != 0);
    // The text that the last site lies in; most often the next one's too.
    let (mut start, mut length, mut room) = (0, 0, 0);
    for &index in sites {
        // Most sites are plain branches with their code and target in one text: the short way.
        if let Some(Branch { code, target, taken_on }) = module.tables.plain_branch(index)
            && code.wrapping_sub(start) < room
            && target.wrapping_sub(start) < length
        {
            let (old, new) = (before == taken_on, after == taken_on);
            // SAFETY: the module's text is loaded while it is registered.
            let bytes = unsafe { patcher.code(code, CODE) }.to_le_bytes();
            let bytes = &bytes[..imp::BRANCH_LENGTH];
            pokes.push(imp::branch_poke(code, bytes, target, old, new)?);
        } else {
            let text = module.text_around(module.tables.code(index));
            pokes.extend(poke(patcher, module, index, text.clone(), state)?);
            (start, length, room) = (text.start, text.len(), text.len().saturating_sub(CODE));
        }
    }
    Ok(())
}

/// The change of any site; nothing when its instruction stays. `text` is the one that it lies in.
#[inline(never)]
#[allow(clippy::absurd_extreme_comparisons)] // plain loads: instructions of no bytes
fn poke(
    patcher: &Patcher,
    module: &Module,
    index: SiteIndex,
    text: Range<usize>,
    state: &State,
) -> Result<Option<Poke>, Box<Mismatch>> {
    let mismatch = |expected| Err(no_site(module, index, expected));
    let Some(Site { code, form }) = module.tables.site(index) else {
        return mismatch("a kind of site that does not exist");
    };
    let room = text.end.saturating_sub(code);
    match form {
        Form::Value => {
            let width = state.descriptor.size() as u8;
            let length = imp::value_length(width);
            if room < length {
                return mismatch("code inside its module's text");
            }
            if state.from == state.to {
                return Ok(None);
            }
            // SAFETY: the module's text is loaded while it is registered.
            let bytes = unsafe { patcher.code(code, room) }.to_le_bytes();
            imp::value_poke(code, &bytes[..length], width, state.from, state.to).map(Some)
        }
        Form::Branch { target, taken_on, test } => {
            if room < imp::BRANCH_LENGTH || module.text_around(target).is_empty() {
                return mismatch("code and target inside its module's text");
            }
            let taken = |bits| test.outcome(state.descriptor, bits) == taken_on;
            // Where a function decides, the built file holds the branch that is not taken.
            let is_unknown = state.is_built && matches!(test, Test::Function(_));
            let (old, new) = (!is_unknown && taken(state.from), taken(state.to));
            if old == new {
                return Ok(None);
            }
            // SAFETY: as above.
            let bytes = unsafe { patcher.code(code, room) }.to_le_bytes();
            imp::branch_poke(code, &bytes[..imp::BRANCH_LENGTH], target, old, new).map(Some)
        }
    }
}

/// Bytes of code that [`Patcher::code`] reads at once.
const CODE: usize = size_of::<u128>();

#[cold]
fn no_site(module: &Module, index: SiteIndex, expected: &str) -> Box<Mismatch> {
    let address = module.tables.code(index);
    Box::new(Mismatch { address, found: vec![], expected: expected.into() })
}
