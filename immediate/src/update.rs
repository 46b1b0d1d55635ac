//! Setting variables: from new values to a batch of pokes, whole or not at all.

#![allow(unsafe_code)]

use immediate_arch::isa::imp;
use immediate_arch::{Mismatch, Patcher, Poke};

use crate::batch::Change;
use crate::config;
use crate::descriptor::Descriptor;
use crate::error::Error;
use crate::record::{Form, SiteIndex, Tables};
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
    let mut touched = Vec::with_capacity(changes.len());
    for change in changes {
        if let Some(id) = registry.entry_of(change.variable)
            && let Some(entry) = registry.entry_mut(id)
        {
            if entry.pending.is_none() {
                touched.push(id);
            }
            entry.pending = Some(change.bits);
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
    config::settle(registry)?;
    let mut pokes = Vec::new();
    for id in touched {
        registry.prepare_texts(*id)?;
        let entry = registry.entry(*id).expect("touched above");
        if let Some(error) = &entry.stale {
            return Err(error.clone());
        }
        let (old, new) = (entry.bits(), entry.pending.expect("touched above"));
        if old == new {
            continue;
        }
        pokes.reserve(entry.site_count());
        for (module, index) in registry.sites_of(entry) {
            let state = State { descriptor: entry.descriptor, from: Some(old), to: new };
            add_poke(&registry.patcher, module, index, &state, &mut pokes)
                .map_err(|mismatch| site_error(entry.descriptor, mismatch))?;
        }
    }
    // A value that no site reads needs no code to change, so no protocol either. It is refused all
    // the same where `set_early` must refuse.
    let commit = || changes.iter().for_each(Change::commit);
    if pokes.is_empty() {
        if mode == Mode::Early && !registry.patcher.is_alone() {
            return Err(Error::NotSingleThreaded);
        }
        commit();
        return Ok(());
    }
    // SAFETY: every poke comes from `add_poke`, which made it from the bytes of a site that its record
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
pub(crate) fn bring_up(registry: &mut Registry, place: usize) -> Stale {
    let mut stale = Stale::default();
    if let Err(error) = config::settle(registry) {
        stale.errors.push(error);
    }
    let (mut pokes, mut changed, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    let mut essential = false;
    for (id, entry) in registry.entries() {
        let current = entry.bits();
        let is_pointer = entry.descriptor.is_pointer();
        let all = entry.descriptor.built_in() != current || is_pointer;
        let state = State { descriptor: entry.descriptor, from: None, to: current };
        let before = pokes.len();
        for (module, index) in registry.sites_in(entry, place) {
            if all || Tables::is_test(index) {
                let added = add_poke(&registry.patcher, module, index, &state, &mut pokes);
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
        // SAFETY: as in `carry_out`; the loader has not let any thread into the module yet, and its
        // constructors come after ours.
        result = unsafe { registry.patcher.apply_unseen(&mut pokes) }.map_err(Error::from);
    }
    if let Err(error) = result {
        wrong.extend(changed.into_iter().map(|id| (id, error.clone())));
        stale.errors.push(error);
        stale.is_fatal |= essential;
    }
    for (id, error) in wrong {
        if let Some(entry) = registry.entry_mut(id) {
            entry.stale = Some(error);
        }
    }
    stale
}

#[cold]
#[allow(clippy::boxed_local)] // as it comes
fn site_error(descriptor: &Descriptor, mismatch: Box<Mismatch>) -> Error {
    Error::Site { variable: descriptor.name(), mismatch: *mismatch }
}

/// What a variable's sites hold and what they shall.
struct State {
    descriptor: &'static Descriptor,
    /// The value they hold; `None` for what the built file holds.
    from: Option<u128>,
    to: u128,
}

/// Adds the change of one site; nothing when its instruction stays.
///
/// It writes the poke where it stays: a result that is handed back is copied, and a copy of what
/// was just written in smaller pieces costs more than making it.
#[inline]
fn add_poke(
    patcher: &Patcher,
    module: &Module,
    index: SiteIndex,
    state: &State,
    pokes: &mut Vec<Poke>,
) -> Result<(), Box<Mismatch>> {
    let code = module.tables.code(index);
    let bad = |expected: &str| {
        Box::new(Mismatch { address: code, found: vec![], expected: expected.into() })
    };
    let site =
        module.tables.site(index).ok_or_else(|| bad("a kind of site that does not exist"))?;
    let descriptor = state.descriptor;
    match site.form {
        Form::Value => {
            let old = state.from.unwrap_or_else(|| descriptor.built_in()) as u64;
            let new = state.to as u64;
            let width = descriptor.size() as u8;
            let length = imp::value_length(width);
            let room = module.room(code);
            if room < length {
                return Err(bad("code inside its module's text"));
            }
            if old == new {
                return Ok(());
            }
            // SAFETY: the module's text is loaded while it is registered.
            let bytes = unsafe { patcher.code(code, room) };
            pokes.push(imp::value_poke(code, &bytes[..length], width, old, new)?);
        }
        Form::Branch { target, .. } => {
            let old = match state.from {
                Some(bits) => site.form.is_taken(descriptor, bits),
                None => site.form.is_built_taken(descriptor),
            };
            let new = site.form.is_taken(descriptor, state.to);
            let room = module.room(code);
            if room < imp::BRANCH_LENGTH || module.room(target) == 0 {
                return Err(bad("code and target inside its module's text"));
            }
            if old == new {
                return Ok(());
            }
            // SAFETY: the module's text is loaded while it is registered.
            let bytes = unsafe { patcher.code(code, room) };
            pokes.push(imp::branch_poke(code, &bytes[..imp::BRANCH_LENGTH], target, old, new)?);
        }
    }
    Ok(())
}
