//! What can be switched: the switches as the scan sees them, the states that they can be in, and
//! the order in which the controller goes through those states.

use immediate::Error;

use crate::table::{FIRST, SECOND, Table};

/// The switches, as the scan reads them. The scan is compiled for each implementation.
pub(crate) trait Switches {
    /// Whether a change patches sites.
    const HAS_SITES: bool;

    /// Profile the lengths of lines.
    fn lines() -> bool;
    /// Profile the lengths of words.
    fn words() -> bool;
    /// Profile the words that are in the table.
    fn matches() -> bool;
    /// Profile initial capitals.
    fn capitals() -> bool;
    /// The verbosity is at least 1: log lines.
    fn logs_lines() -> bool;
    /// The verbosity is at least 2: log the words that are in the table.
    fn logs_matches() -> bool;
    /// The verbosity has the bit 4: log a digest of each line.
    fn logs_digests() -> bool;
    /// A line longer than this is long.
    fn limit() -> u32;
    /// The words to look for.
    fn table() -> &'static Table;

    /// Carries out changes; at one instant, where the switches can do that.
    fn apply(changes: &[Change]) -> Result<(), Error>;
}

/// A switch and what it shall be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Lines(bool),
    Words(bool),
    Matches(bool),
    Capitals(bool),
    Verbosity(u8),
    Limit(u32),
    Table(&'static Table),
}

/// The state of all switches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) lines: bool,
    pub(crate) words: bool,
    pub(crate) matches: bool,
    pub(crate) capitals: bool,
    pub(crate) verbosity: u8,
    pub(crate) is_limit_high: bool,
    pub(crate) is_table_second: bool,
}

pub(crate) const LOW_LIMIT: u32 = 72;
pub(crate) const HIGH_LIMIT: u32 = 96;

pub(crate) const OFF: State = State {
    lines: false,
    words: false,
    matches: false,
    capitals: false,
    verbosity: 0,
    is_limit_high: false,
    is_table_second: false,
};

pub(crate) const ON: State = State {
    lines: true,
    words: true,
    matches: true,
    capitals: true,
    verbosity: 6,
    is_limit_high: true,
    is_table_second: true,
};

/// What the controller does, again and again: one switch, then several together. The last step
/// leaves all of them off.
const STEPS: [fn(&mut State); 16] = [
    |to| to.lines = true,
    |to| (to.words, to.matches) = (true, true),
    |to| to.verbosity = 1,
    |to| to.is_limit_high = true,
    |to| to.is_table_second = true,
    |to| to.capitals = true,
    |to| to.verbosity = 2,
    |to| (to.words, to.is_table_second) = (false, false),
    |to| to.verbosity = 5,
    |to| to.lines = false,
    |to| to.is_limit_high = false,
    |to| *to = ON,
    |to| to.verbosity = 0,
    |to| (to.lines, to.words, to.matches, to.capitals) = (false, false, false, false),
    |to| to.verbosity = 4,
    |to| *to = OFF,
];

/// The states that the controller goes through, in a circle.
pub(crate) fn circle() -> Vec<State> {
    let steps = STEPS.iter().scan(OFF, |state, step| {
        step(state);
        Some(*state)
    });
    steps.collect()
}

impl State {
    fn settings(&self) -> [Change; 7] {
        [
            Change::Lines(self.lines),
            Change::Words(self.words),
            Change::Matches(self.matches),
            Change::Capitals(self.capitals),
            Change::Verbosity(self.verbosity),
            Change::Limit(if self.is_limit_high { HIGH_LIMIT } else { LOW_LIMIT }),
            Change::Table(if self.is_table_second { &SECOND } else { &FIRST }),
        ]
    }

    /// What makes this state of any other.
    pub(crate) fn all(&self) -> Vec<Change> {
        self.settings().to_vec()
    }

    /// What makes this state of that one.
    pub(crate) fn changes_from(&self, from: &State) -> Vec<Change> {
        let is_new = [
            self.lines != from.lines,
            self.words != from.words,
            self.matches != from.matches,
            self.capitals != from.capitals,
            self.verbosity != from.verbosity,
            self.is_limit_high != from.is_limit_high,
            self.is_table_second != from.is_table_second,
        ];
        let pairs = self.settings().into_iter().zip(is_new);
        pairs.filter_map(|(change, is_new)| is_new.then_some(change)).collect()
    }
}
