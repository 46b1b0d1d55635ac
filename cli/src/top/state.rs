//! What the screen shows.

use std::collections::{HashMap, VecDeque};

use immediate::control::VariableState;

/// How many looks the history of a variable goes back.
pub(super) const HISTORY: usize = 24;

/// What the keys go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Moving and toggling.
    Browse,
    /// Writing what names must contain.
    Search,
    /// Writing a value for the variable of this name.
    Edit { name: String, value: String },
}

/// How a variable went.
#[derive(Debug, Default)]
pub(super) struct History {
    hits: Option<u64>,
    /// Hits between two looks, oldest first; nothing where the variable is not counted.
    pub(super) rates: VecDeque<u64>,
    /// The value at the last look.
    value: String,
    /// Whether the last look found another value than the one before.
    pub(super) has_changed: bool,
}

#[derive(Debug)]
pub(super) struct View {
    pub(super) title: String,
    all: Vec<VariableState>,
    histories: HashMap<(String, String), History>,
    pub(super) search: String,
    /// The row that the keys mean, among those that are shown.
    pub(super) selected: usize,
    pub(super) mode: Mode,
    /// What the last key did, or why not.
    pub(super) message: Option<String>,
    /// How many rows the screen has.
    pub(super) page: usize,
}

fn key(one: &VariableState) -> (String, String) {
    (one.name.clone(), one.module.clone())
}

impl View {
    pub(super) fn new(title: String) -> Self {
        View {
            title,
            all: Vec::new(),
            histories: HashMap::new(),
            search: String::new(),
            selected: 0,
            mode: Mode::Browse,
            message: None,
            page: 1,
        }
    }

    /// Takes in what a look found.
    pub(super) fn update(&mut self, variables: Vec<VariableState>) {
        let mut before = std::mem::take(&mut self.histories);
        for one in &variables {
            let is_new = !before.contains_key(&key(one));
            let mut history = before.remove(&key(one)).unwrap_or_default();
            if let (Some(now), Some(then)) = (one.hits, history.hits) {
                history.rates.push_back(now.saturating_sub(then));
                if history.rates.len() > HISTORY {
                    history.rates.pop_front();
                }
            }
            history.hits = one.hits;
            history.has_changed = !is_new && history.value != one.value;
            history.value.clone_from(&one.value);
            self.histories.insert(key(one), history);
        }
        let meant = self.current().map(key);
        self.all = variables;
        // The mark stays on its variable when others come and go.
        let place = meant.and_then(|meant| self.shown().position(|one| key(one) == meant));
        self.select(place.unwrap_or(self.selected));
    }

    /// The variables whose names contain what is searched for, whatever the case.
    pub(super) fn shown(&self) -> impl Iterator<Item = &VariableState> {
        let wanted = self.search.to_lowercase();
        self.all.iter().filter(move |one| one.name.to_lowercase().contains(&wanted))
    }

    pub(super) fn total(&self) -> usize {
        self.all.len()
    }

    pub(super) fn current(&self) -> Option<&VariableState> {
        self.shown().nth(self.selected)
    }

    pub(super) fn history(&self, one: &VariableState) -> Option<&History> {
        self.histories.get(&key(one))
    }

    /// Moves the mark to a row, or to the last one.
    pub(super) fn select(&mut self, row: usize) {
        self.selected = row.min(self.shown().count().saturating_sub(1));
    }
}
