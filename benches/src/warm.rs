//! The read side, warm: a loop without a check, and the same loop with each kind of check that is
//! off.
//!
//! The loop hashes a text byte by byte (FNV-1a), as the hot loop of a program does its work: the
//! check has a few instructions for company, and no loop is faster for having been unrolled.
//!
//! A second loop, which counts lines, is one that the compiler turns into vector instructions. It
//! does not do so around any check that can change at run time, an atomic load as little as a site,
//! so there each of them costs what the vectors save.

#![allow(unsafe_code)]

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, RwLock};

use arc_swap::ArcSwap;
use immediate::{Immediate, immediate, immediate_if, immediate_read};
use static_keys::{define_static_key_false, static_branch_unlikely};

#[immediate]
static OFF: Immediate<bool> = Immediate::new(false);
static ATOMIC: AtomicBool = AtomicBool::new(false);
define_static_key_false!(KEY);
static SWAPPED: LazyLock<ArcSwap<bool>> = LazyLock::new(|| ArcSwap::from_pointee(false));
static LOCKED: RwLock<bool> = RwLock::new(false);
static PARKED: parking_lot::RwLock<bool> = parking_lot::RwLock::new(false);
/// As a program keeps what it was told by its environment or a file.
static SETTINGS: LazyLock<HashMap<String, bool>> = LazyLock::new(|| {
    let names = ["color", "trace", "verbose", "dry-run", "cache", "metrics", "audit", "replay"];
    names.iter().map(|name| (name.to_string(), false)).collect()
});

fn is_swapped() -> bool {
    **SWAPPED.load()
}

fn is_set() -> bool {
    SETTINGS.get("trace").copied().unwrap_or(false)
}

/// A loop with a kind of check in it.
#[derive(Clone, Copy, Debug)]
pub struct Loop {
    /// Its name in keys.
    pub key: &'static str,
    /// Its name for people.
    pub what: &'static str,
    run: fn(&[u8]) -> u64,
}

impl Loop {
    /// Runs it over a text.
    #[must_use]
    pub fn run(&self, text: &[u8]) -> u64 {
        (self.run)(text)
    }
}

#[cold]
#[inline(never)]
fn note(state: u64) {
    black_box(state);
}

/// A module with the two loops: `$check` gives a `bool`, or does itself what is to be done when it is
/// on.
macro_rules! loops {
    ($name:ident, $state:ident => $check:expr) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            #[inline(never)]
            pub(super) fn hash(text: &[u8]) -> u64 {
                let mut $state = 0xcbf2_9ce4_8422_2325_u64;
                for byte in text {
                    $state = ($state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
                    $check
                }
                $state
            }

            #[inline(never)]
            pub(super) fn lines(text: &[u8]) -> u64 {
                let mut $state = 0;
                for byte in text {
                    $state += u64::from(*byte == b'\n');
                    $check
                }
                $state
            }
        }
    };
    ($name:ident, $check:expr) => {
        loops!($name, state => {
            if $check {
                note(state);
            }
        });
    };
}

loops!(base, false);
loops!(base_again, false);
loops!(branch, immediate_if!(OFF));
loops!(value, immediate_read!(OFF));
loops!(atomic, ATOMIC.load(Ordering::Relaxed));
loops!(key, static_branch_unlikely!(KEY));
loops!(swapped, is_swapped());
loops!(logged, state => log::trace!("{state}"));
loops!(traced, state => tracing::trace!("{state}"));
loops!(locked, LOCKED.read().is_ok_and(|locked| *locked));
loops!(parked, *PARKED.read());
loops!(settings, is_set());

macro_rules! contenders {
    ($run:ident) => {
        [
            Loop { key: "base", what: "no check", run: base::$run },
            Loop { key: "base_again", what: "no check, again", run: base_again::$run },
            Loop { key: "immediate", what: "immediate_if!", run: branch::$run },
            Loop { key: "immediate_value", what: "immediate_read!", run: value::$run },
            Loop { key: "atomic", what: "relaxed AtomicBool", run: atomic::$run },
            Loop { key: "static_keys", what: "static-keys", run: key::$run },
            Loop { key: "arc_swap", what: "arc-swap", run: swapped::$run },
            Loop { key: "log", what: "log, disabled", run: logged::$run },
            Loop { key: "tracing", what: "tracing, disabled", run: traced::$run },
            Loop { key: "rwlock", what: "std RwLock, read", run: locked::$run },
            Loop { key: "parking_lot", what: "parking_lot RwLock, read", run: parked::$run },
            Loop { key: "environment", what: "hash lookup of a setting", run: settings::$run },
        ]
    };
}

/// The loop that hashes. The first has no check; the second neither: how far two runs of the same
/// code lie apart.
pub const HASH: [Loop; 12] = contenders!(hash);
/// The loop that counts lines.
pub const LINES: [Loop; 12] = contenders!(lines);

/// A subscriber of `tracing` that exists and wants nothing, as in a program whose level is `off`.
struct Nobody;

impl tracing::Subscriber for Nobody {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        false
    }

    fn register_callsite(
        &self,
        _: &'static tracing::Metadata<'static>,
    ) -> tracing::subscriber::Interest {
        tracing::subscriber::Interest::never()
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        // The filter by level would spare the question to the call site, where the program wants
        // some of this level: so the check is the one that a program with filters makes.
        Some(tracing::level_filters::LevelFilter::TRACE)
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {}

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// Switches everything off, in ways that the compiler cannot see through.
pub fn prepare() {
    static_keys::global_init();
    // Somebody could switch it: a flag that nobody writes is a constant to the compiler, and the
    // loop with it would be the loop without (seen).
    black_box(&ATOMIC).store(false, Ordering::Relaxed);
    black_box(&LOCKED).write().into_iter().for_each(|mut locked| *locked = false);
    *black_box(&PARKED).write() = false;
    SWAPPED.store(black_box(false).into());
    log::set_max_level(black_box(log::LevelFilter::Info));
    let _ = tracing::subscriber::set_global_default(Nobody);
}

/// Text that stays in the first-level cache.
#[must_use]
pub fn text() -> Vec<u8> {
    let line = b"GET /index.html 200 5120 12us \"agent\"\n";
    line.iter().copied().cycle().take(16 * 1024).collect()
}
