//! The figures, each by its path, with all its runs.

use std::collections::BTreeMap;

use immediate_benches::alternate::Middle;
use serde_json::{Map, Value, json};

use crate::effort::Effort;
use crate::machine::Machine;
use crate::targets::Target;

/// The runs of every figure, by its dotted path.
#[derive(Debug, Default)]
pub(crate) struct Figures(BTreeMap<String, Vec<f64>>);

impl Figures {
    /// Adds a run.
    pub(crate) fn add(&mut self, path: impl Into<String>, value: f64) {
        self.0.entry(path.into()).or_default().push(value);
    }

    /// The middle of a figure's runs.
    ///
    /// # Panics
    ///
    /// When there is no such figure.
    pub(crate) fn middle(&self, path: &str) -> Middle {
        Middle::of(self.runs(path).to_vec())
    }

    /// The median of a figure's runs.
    pub(crate) fn median(&self, path: &str) -> f64 {
        self.middle(path).median
    }

    /// All runs, in order.
    pub(crate) fn runs(&self, path: &str) -> &[f64] {
        self.0.get(path).unwrap_or_else(|| panic!("no experiment gives {path}"))
    }

    /// One figure divided by another, round by round where both ran in each round.
    pub(crate) fn ratio(&self, numerator: &str, denominator: &str) -> Middle {
        let (above, below) = (self.runs(numerator), self.runs(denominator));
        if above.len() == below.len() {
            Middle::of(above.iter().zip(below).map(|(a, b)| a / b).collect())
        } else {
            let (above, below) = (self.middle(numerator), self.middle(denominator));
            above.times(1.0 / below.median)
        }
    }

    /// The paths below one, with what follows it.
    pub(crate) fn below<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.keys().filter_map(move |key| key.strip_prefix(path)?.strip_prefix('.'))
    }

    /// The report for programs: every figure at its path, its quartiles at the same path below
    /// `spread`, how many runs there were below `runs`.
    pub(crate) fn json(
        &self,
        effort: Effort,
        seconds: f64,
        machine: &Machine,
        targets: &[Target],
    ) -> String {
        let mut root = Map::new();
        let (mut spread, mut runs) = (Map::new(), Map::new());
        for path in self.0.keys() {
            let middle = self.middle(path);
            insert(&mut root, path, json!(middle.median));
            insert(&mut spread, path, json!([middle.low, middle.high]));
            insert(&mut runs, path, json!(middle.count));
        }
        root.insert("spread".into(), Value::Object(spread));
        root.insert("runs".into(), Value::Object(runs));
        root.insert("version".into(), json!(1));
        root.insert("effort".into(), json!(effort.name()));
        root.insert("seconds".into(), json!(seconds));
        root.insert("machine".into(), machine.json());
        root.insert("targets".into(), targets.iter().map(Target::json).collect());
        format!("{:#}\n", Value::Object(root))
    }
}

/// Puts a value at a dotted path.
fn insert(object: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            object.insert(path.into(), value);
        }
        Some((first, rest)) => {
            let inner = object.entry(first).or_insert_with(|| Value::Object(Map::new()));
            let inner = inner.as_object_mut().expect("no figure lies below another");
            insert(inner, rest, value);
        }
    }
}
