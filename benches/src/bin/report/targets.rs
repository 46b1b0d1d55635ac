//! The bounds that the library shall keep, and whether it does in this run.

use std::fmt;

use serde_json::{Value, json};

use crate::figures::Figures;

/// A bound, and the figure that it is for.
#[derive(Debug)]
pub(crate) struct Target {
    what: String,
    value: f64,
    bound: f64,
    /// Whether the figure shall lie above the bound.
    above: bool,
    unit: &'static str,
}

impl Target {
    /// Whether it is kept.
    pub(crate) fn is_met(&self) -> bool {
        if self.above { self.value >= self.bound } else { self.value <= self.bound }
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        json!({
            "what": self.what,
            "value": self.value,
            "bound": self.bound,
            "at_least": self.above,
            "met": self.is_met(),
        })
    }

    /// A row of the report's table.
    pub(crate) fn row(&self) -> String {
        let Target { what, value, bound, above, unit } = self;
        let side = if *above { "at least" } else { "at most" };
        let verdict = if self.is_met() { "met" } else { "**missed**" };
        format!(
            "| {what} | {} {unit} | {side} {} {unit} | {verdict} |",
            round(*value),
            round(*bound)
        )
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target { what, value, bound, above, unit } = self;
        let verdict = if self.is_met() { "met   " } else { "MISSED" };
        let side = if *above { "at least" } else { "at most" };
        write!(out, "{verdict} {what}: {} {unit} ({side} {})", round(*value), round(*bound))
    }
}

/// Three digits that count, or all before the point.
pub(crate) fn round(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 3,
        size if size >= 0.01 => 4,
        _ => 6,
    };
    format!("{value:.digits$}")
}

/// All of them.
pub(crate) fn all(figures: &Figures) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut at_most = |what: &str, value, bound, unit| {
        targets.push(Target { what: what.into(), value, bound, above: false, unit });
    };
    at_most(
        "warm loop with a disabled branch / without",
        figures.ratio("read.warm.immediate_ns", "read.warm.base_ns").median,
        1.02,
        "times",
    );
    let cold = |name: &str| figures.median(&format!("read.cold.{name}_cycles"));
    at_most(
        "cold immediate: share of what the memory read adds",
        (cold("immediate") - cold("base")) / (cold("memory") - cold("base")) * 100.0,
        2.0,
        "%",
    );
    for pressure in ["quiet", "linear", "random", "instructions"] {
        let path = |name: &str| format!("markers.{name}.{pressure}_cycles");
        let ratio = |name: &str| figures.ratio(&path(name), &path("compiled_out"));
        // As far as two measurements of the same code lie apart in half of the rounds.
        let noise = ratio("compiled_out_again");
        at_most(
            &format!(
                "markers as immediates / compiled out, {pressure}; bound: the same code again"
            ),
            ratio("immediate").median,
            noise.high.max(2.0 - noise.low).max(1.0),
            "times",
        );
    }
    let (set, floor) =
        ("update.int3.mprotect.sites_1.threads_1_us", "update.floor.int3.threads_1_us");
    at_most(
        "one site by int3, one running thread / its bare system calls",
        figures.ratio(set, floor).median,
        1.3,
        "times",
    );
    at_most(
        "the same / all its system calls, with the look at the threads",
        figures.ratio(set, "update.floor_all.int3.threads_1_us").median,
        1.3,
        "times",
    );
    at_most(
        "one site by quadword, one running thread / its bare system calls",
        figures
            .ratio(
                "update.quadword.mprotect.sites_1.threads_1_us",
                "update.floor.quadword.threads_1_us",
            )
            .median,
        1.3,
        "times",
    );
    for protocol in ["int3", "quadword"] {
        at_most(
            &format!("100,000 sites in one batch by {protocol}, one running thread"),
            figures.median(&format!("update.{protocol}.mprotect.sites_100000.threads_1_us")),
            1_000.0,
            "µs",
        );
    }
    at_most(
        "one site with 1,000,000 others / with one",
        figures.ratio("growth.others_1000000_us", "growth.others_1_us").median,
        1.1,
        "times",
    );
    let mut at_least = |what: &str, value, bound, unit| {
        targets.push(Target { what: what.into(), value, bound, above: true, unit });
    };
    at_least(
        "1,000 sites, one thread: static-keys / immediates",
        figures.median("update.static_keys.sites_1000_us")
            / figures.median("update.single.mprotect.sites_1000.threads_0_us"),
        500.0,
        "times",
    );
    for protocol in ["int3", "quadword", "stop_world"] {
        at_least(
            &format!("readers' throughput at 1,000 sets a second by {protocol}"),
            figures.median(&format!("storm.{protocol}.hz_1000.throughput_ratio")),
            0.97,
            "times",
        );
    }
    targets
}
