//! The switches as immediate values.

use immediate::{Batch, Error, Immediate, immediate, immediate_if, immediate_read};

use crate::switches::{Change, LOW_LIMIT, Switches};
use crate::table::{FIRST, Table};

/// Profile the lengths of lines.
#[immediate]
pub(crate) static PROFILE_LINES: Immediate<bool> = Immediate::new(false);
/// Profile the lengths of words.
#[immediate]
pub(crate) static PROFILE_WORDS: Immediate<bool> = Immediate::new(false);
/// Profile the words that are in the table.
#[immediate]
pub(crate) static PROFILE_MATCHES: Immediate<bool> = Immediate::new(false);
/// Profile initial capitals.
#[immediate]
pub(crate) static PROFILE_CAPITALS: Immediate<bool> = Immediate::new(false);
/// How much is logged: 1 lines, 2 words too; the bit 4 adds digests.
#[immediate]
pub(crate) static VERBOSITY: Immediate<u8> = Immediate::new(0);
/// A line longer than this is long.
#[immediate]
pub(crate) static LIMIT: Immediate<u32> = Immediate::new(LOW_LIMIT);
/// The words to look for.
#[immediate]
pub(crate) static TABLE: Immediate<&'static Table> = Immediate::new(&FIRST);

/// How many sites the switches have.
pub(crate) fn site_count() -> usize {
    [&PROFILE_LINES, &PROFILE_WORDS, &PROFILE_MATCHES, &PROFILE_CAPITALS]
        .map(Immediate::site_count)
        .iter()
        .sum::<usize>()
        + VERBOSITY.site_count()
        + LIMIT.site_count()
        + TABLE.site_count()
}

/// Switches in the instruction stream.
pub(crate) struct Immediates;

impl Switches for Immediates {
    const HAS_SITES: bool = true;

    #[inline(always)]
    fn lines() -> bool {
        immediate_if!(PROFILE_LINES)
    }

    #[inline(always)]
    fn words() -> bool {
        immediate_if!(PROFILE_WORDS)
    }

    #[inline(always)]
    fn matches() -> bool {
        immediate_if!(PROFILE_MATCHES)
    }

    #[inline(always)]
    fn capitals() -> bool {
        immediate_if!(PROFILE_CAPITALS)
    }

    #[inline(always)]
    fn logs_lines() -> bool {
        immediate_if!(VERBOSITY >= 1)
    }

    #[inline(always)]
    fn logs_matches() -> bool {
        immediate_if!(VERBOSITY >= 2)
    }

    #[inline(always)]
    fn logs_digests() -> bool {
        immediate_if!(VERBOSITY, |verbosity| verbosity & 4 != 0)
    }

    #[inline(always)]
    fn limit() -> u32 {
        immediate_read!(LIMIT)
    }

    #[inline(always)]
    fn table() -> &'static Table {
        immediate_read!(TABLE)
    }

    fn apply(changes: &[Change]) -> Result<(), Error> {
        match changes {
            [one] => set(*one),
            many => many.iter().fold(Batch::new(), add).apply(),
        }
    }
}

fn set(change: Change) -> Result<(), Error> {
    match change {
        Change::Lines(to) => PROFILE_LINES.set(to),
        Change::Words(to) => PROFILE_WORDS.set(to),
        Change::Matches(to) => PROFILE_MATCHES.set(to),
        Change::Capitals(to) => PROFILE_CAPITALS.set(to),
        Change::Verbosity(to) => VERBOSITY.set(to),
        Change::Limit(to) => LIMIT.set(to),
        Change::Table(to) => TABLE.set(to),
    }
}

fn add(batch: Batch<'static>, change: &Change) -> Batch<'static> {
    match *change {
        Change::Lines(to) => batch.set(&PROFILE_LINES, to),
        Change::Words(to) => batch.set(&PROFILE_WORDS, to),
        Change::Matches(to) => batch.set(&PROFILE_MATCHES, to),
        Change::Capitals(to) => batch.set(&PROFILE_CAPITALS, to),
        Change::Verbosity(to) => batch.set(&VERBOSITY, to),
        Change::Limit(to) => batch.set(&LIMIT, to),
        Change::Table(to) => batch.set(&TABLE, to),
    }
}
