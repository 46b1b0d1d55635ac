//! Readers of many sites who tell each other what they have seen.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use immediate::{Batch, Error, Immediate, immediate, immediate_if, immediate_read};
use immediate_tests::scatter::{
    Narrow, WIDE_GENERATIONS, Wide, gather_narrow, gather_wide, scatter_narrow, scatter_wide,
};
use immediate_tests::torture::{self, Bound, Random, Window};

#[immediate]
static WIDE: Immediate<Wide> = Immediate::new(0);
#[immediate]
static NARROW: Immediate<Narrow> = Immediate::new(0);
#[immediate]
static ODD: Immediate<bool> = Immediate::new(false);

/// What a site told of the generation.
#[derive(Clone, Copy)]
enum Read {
    Whole(Option<u64>),
    IsOdd(bool),
}

// Functions that differ in more than their name: LLVM merges identical ones, and their sites.

#[inline(never)]
fn wide<const SITE: u64>() -> Read {
    let site = SITE as Wide;
    Read::Whole(gather_wide(std::hint::black_box(immediate_read!(WIDE) ^ site) ^ site))
}

#[inline(never)]
fn narrow<const SITE: u64>() -> Read {
    let site = SITE as Narrow;
    Read::Whole(gather_narrow(std::hint::black_box(immediate_read!(NARROW) ^ site) ^ site))
}

#[inline(never)]
fn odd<const SITE: u64>() -> Read {
    Read::IsOdd(std::hint::black_box(if immediate_if!(ODD) { SITE } else { !SITE }) == SITE)
}

macro_rules! sites {
    ($($site:literal)*) => { [$([wide::<$site> as fn() -> Read, narrow::<$site>, odd::<$site>]),*] };
}

static SITES: [[fn() -> Read; 3]; 70] = sites!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34
    35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66
    67 68 69
);

static WINDOW: Window = Window::new();
/// The latest generation that any reader has seen.
static SEEN: AtomicU64 = AtomicU64::new(0);
static BACKWARDS: AtomicU64 = AtomicU64::new(0);
static EARLY: AtomicU64 = AtomicU64::new(0);
static BACKWARDS_AT_ONE_SITE: AtomicU64 = AtomicU64::new(0);

/// What the readers saw.
#[allow(dead_code)] // each of the programs looks at its part
pub(crate) struct Seen {
    /// Reads older than what the reader had been told of.
    pub(crate) backwards: u64,
    /// Reads older than a set that had returned.
    pub(crate) early: u64,
    /// Reads older than what the same thread had read at the same site.
    pub(crate) backwards_at_one_site: u64,
}

/// Sets all variables to a generation.
pub(crate) fn set(generation: u64) -> Result<(), Error> {
    Batch::new()
        .set(&WIDE, scatter_wide(generation))
        .set(&NARROW, scatter_narrow(generation))
        .set(&ODD, generation % 2 == 1)
        .apply()
}

/// What every site says.
#[allow(dead_code)]
pub(crate) fn read_all() -> Vec<u64> {
    let all = SITES.iter().flatten().map(|site| match site() {
        Read::Whole(generation) => generation.expect("no mixture"),
        Read::IsOdd(odd) => odd.into(),
    });
    all.collect()
}

/// The backing values.
#[allow(dead_code)]
pub(crate) fn backing() -> (Wide, Narrow, bool) {
    (WIDE.get(), NARROW.get(), ODD.get())
}

fn reader(index: usize) -> impl FnMut() {
    let mut random = Random::new(index);
    let mut last = vec![0; 3 * SITES.len()];
    move || {
        let (kind, place) = (random.below(3), random.below(SITES.len()));
        let told = SEEN.load(SeqCst);
        let (read, from, to) = WINDOW.read(SITES[place][kind]);
        let generation = match read {
            Read::Whole(generation) => generation.expect("no mixture"),
            // Between two generations the parity tells which. If more went by, it tells nothing.
            Read::IsOdd(is_odd) if to - from <= 1 => from + u64::from(is_odd != (from % 2 == 1)),
            Read::IsOdd(_) => return,
        };
        assert!(generation <= to, "site {kind} {place}: {generation}, but only {to} had begun");
        BACKWARDS.fetch_add(u64::from(generation < told), SeqCst);
        EARLY.fetch_add(u64::from(generation < from), SeqCst);
        let own = &mut last[3 * place + kind];
        BACKWARDS_AT_ONE_SITE.fetch_add(u64::from(generation < *own), SeqCst);
        *own = generation;
        SEEN.fetch_max(generation, SeqCst);
    }
}

/// Sets and reads until the bound.
pub(crate) fn run(name: &str, bound: Bound) -> Seen {
    let bound = Bound { updates: bound.updates.min(WIDE_GENERATIONS - 1), ..bound };
    torture::run(name, bound, 4, reader, |generation| {
        WINDOW.set(generation, || set(generation).expect("every thread can trap"));
    });
    Seen {
        backwards: BACKWARDS.load(SeqCst),
        early: EARLY.load(SeqCst),
        backwards_at_one_site: BACKWARDS_AT_ONE_SITE.load(SeqCst),
    }
}
