//! One runtime in a process: registry, locks and handlers of one copy of this library, which all
//! copies use.
//!
//! Every library that links this crate statically has a copy of its code and of its statics. The
//! first copy that is asked for anything owns the runtime; later ones find it through the notes
//! (`note`) and reach it through the functions of its [`Interface`]. The owner's library stays loaded
//! for good.
//!
//! Copies whose interfaces or whose kinds of sites differ cannot use each other: each kind has a
//! runtime of its own, which is reported, by the later one. Their trap handlers know each other
//! (`immediate_arch::Chain`).
//!
//! # How the owner is found
//!
//! Nothing is shared before it is found, so it is an election among the copies, by the word `state`
//! in each one's interface. All its loads and stores are `SeqCst`.
//!
//! 1. The copy proposes itself.
//! 2. It looks at all others, in the loader's order, which is the same for everybody.
//! 3. If one owns the runtime, it withdraws and uses that one.
//! 4. If an earlier one proposes itself, it withdraws and begins again.
//! 5. If a later one proposes itself, it waits: that one withdraws, or has not seen it and owns.
//! 6. Else it owns the runtime.
//!
//! Of two copies that propose themselves, at least one sees the other; so no two of them own. Waiting
//! is for a thread that only looks, which takes none of the locks that a constructor runs under.

#![allow(unsafe_code)]

mod interface;
mod note;

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::batch::Change;
use crate::error::Error;
use crate::lock;
use crate::module;
use crate::update::{self, Mode};
use crate::variable::Untyped;

pub(crate) use interface::{INTERFACE, Interface};
use note::{Found, NONE, OWNS, PROPOSED};

/// The runtime that this copy uses, once it is known.
static CHOSEN: AtomicPtr<Interface> = AtomicPtr::new(ptr::null_mut());

/// The runtime of another copy, if that is the one to use.
pub(crate) fn foreign() -> Option<&'static Interface> {
    let mut chosen = CHOSEN.load(Ordering::Acquire).cast_const();
    if chosen.is_null() {
        chosen = elect();
    }
    // SAFETY: an owner's library is never unmapped.
    (!ptr::eq(chosen, &raw const INTERFACE)).then(|| unsafe { &*chosen })
}

#[cold]
fn elect() -> *const Interface {
    loop {
        let own = INTERFACE.prefix.state.compare_exchange(
            NONE,
            PROPOSED,
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
        if own.is_err() {
            // Another thread of this copy is at it.
            let chosen = CHOSEN.load(Ordering::Acquire).cast_const();
            if !chosen.is_null() {
                return chosen;
            }
            std::thread::yield_now();
            continue;
        }
        let found = loop {
            let found = note::look(&INTERFACE);
            if found.owner.is_some() || found.has_earlier || !found.has_later {
                break found;
            }
            std::thread::yield_now();
        };
        let Found { owner, has_earlier, .. } = found;
        if let Some(owner) = owner {
            CHOSEN.store(ptr::from_ref(owner).cast_mut(), Ordering::Release);
            INTERFACE.prefix.state.store(NONE, Ordering::SeqCst);
            return owner;
        }
        if has_earlier {
            INTERFACE.prefix.state.store(NONE, Ordering::SeqCst);
            std::thread::yield_now();
            continue;
        }
        let own = &raw const INTERFACE;
        CHOSEN.store(own.cast_mut(), Ordering::Release);
        INTERFACE.prefix.state.store(OWNS, Ordering::SeqCst);
        begin();
        return own;
    }
}

/// What the owner does once.
fn begin() {
    module::stay();
    lock::watch_fork();
    let mut lines = Vec::from_iter(meet_strangers());
    if let Ok(mut locked) = lock::lock() {
        // The one question to the loader under this lock: a module that asks here and is unloaded
        // now waits for the lock before it is unmapped. Nobody can be holding the loader's list for
        // us: whoever calls this library from inside `dl_iterate_phdr` has chosen a runtime before.
        for header in note::waiting_modules() {
            // SAFETY: found in a module that is loaded and has asked to be registered.
            lines.extend(unsafe { module::register_running(locked.registry(), header) });
        }
    }
    lines.iter().for_each(|line| module::report(line));
}

/// Makes this runtime and those of other kinds known to each other, and says that there are some.
///
/// Whoever began later sees the earlier one here, and at most both see each other.
fn meet_strangers() -> Option<String> {
    let strangers = note::look(&INTERFACE).strangers;
    strangers.iter().for_each(|(stranger, _)| INTERFACE.prefix.chain.meet(stranger.chain));
    let (_, first) = strangers.first()?;
    Some(format!(
        "{} has {}, {first}: each keeps its own variables and nothing is shared; build them with one \
         version and one configuration",
        module::own_name(),
        INTERFACE.prefix.describe(),
    ))
}

/// Sets all of `changes`, or none.
pub(crate) fn apply(changes: &[Change<'_>], mode: Mode) -> Result<(), Error> {
    match foreign() {
        Some(there) => there.apply(None, changes, mode),
        None => update::apply(lock::setters()?.registry()?.registry(), changes, mode),
    }
}

/// The setters' lock of the runtime, held.
pub(crate) enum Held {
    /// Of this copy.
    Here(lock::Setters),
    /// Of another copy.
    There(interface::Lock),
}

/// Waits for the setters' lock.
pub(crate) fn hold() -> Result<Held, Error> {
    Ok(match foreign() {
        Some(there) => Held::There(there.lock()?),
        None => Held::Here(lock::setters()?),
    })
}

impl Held {
    /// Sets all of `changes`, or none.
    pub(crate) fn apply(&self, changes: &[Change<'_>]) -> Result<(), Error> {
        match self {
            Held::Here(setters) => {
                update::apply(setters.registry()?.registry(), changes, Mode::Live)
            }
            Held::There(lock) => lock.apply(changes),
        }
    }
}

/// How many sites read the variable.
pub(crate) fn site_count(variable: Untyped<'_>) -> usize {
    match foreign() {
        Some(there) => there.site_count(variable),
        None => lock::lock().map_or(0, |mut locked| locked.registry().site_count(variable)),
    }
}
