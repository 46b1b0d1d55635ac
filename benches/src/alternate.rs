//! Contenders in turn, and the median of their ratios.

use std::fmt;
use std::time::Duration;

/// How much a benchmark does, by the arguments that cargo and criterion's users pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// `cargo bench`: so many rounds as the benchmark asks for.
    Full,
    /// `--test`: a few rounds, to see that it works.
    Try,
    /// `--list`: none.
    None,
}

impl Effort {
    /// What the arguments say.
    #[must_use]
    pub fn asked() -> Self {
        let has = |wanted: &str| std::env::args().any(|argument| argument == wanted);
        if has("--list") {
            Effort::None
        } else if has("--test") || !has("--bench") {
            Effort::Try
        } else {
            Effort::Full
        }
    }
}

/// The times of every contender in every round.
#[derive(Debug)]
pub struct Rounds {
    times: Vec<Vec<Duration>>,
}

/// Runs `contenders` contenders in turn for `rounds` rounds. Each round begins with another one.
pub fn alternate(
    contenders: usize,
    rounds: usize,
    mut time: impl FnMut(usize) -> Duration,
) -> Rounds {
    let mut times = vec![Vec::with_capacity(rounds); contenders];
    // One round for caches and branch predictors, not counted.
    for contender in 0..contenders {
        time(contender);
    }
    for round in 0..rounds {
        for turn in 0..contenders {
            let contender = (round + turn) % contenders;
            times[contender].push(time(contender));
        }
    }
    Rounds { times }
}

/// A median with the quartiles around it.
#[derive(Clone, Copy, Debug)]
pub struct Middle {
    /// A quarter of the values lie below.
    pub low: f64,
    /// Half of the values lie below.
    pub median: f64,
    /// Three quarters of the values lie below.
    pub high: f64,
    /// How many values there are.
    pub count: usize,
}

impl Middle {
    /// The middle of some values, one at least.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |part: usize| values[(values.len() - 1) * part / 4];
        Middle { low: at(1), median: at(2), high: at(3), count: values.len() }
    }
}

impl Middle {
    /// The same values, each times `factor`.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        let Middle { low, median, high, count } = self;
        Middle { low: low * factor, median: median * factor, high: high * factor, count }
    }
}

impl fmt::Display for Middle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Middle { low, median, high, count } = self;
        let digits = if *median < 20.0 { 3 } else { 0 };
        write!(
            out,
            "{median:.digits$} (median of {count} rounds, quartiles {low:.digits$} and \
             {high:.digits$})"
        )
    }
}

impl Rounds {
    /// One contender's time divided by another's, round by round.
    #[must_use]
    pub fn ratio(&self, numerator: usize, denominator: usize) -> Middle {
        let pairs = self.times[numerator].iter().zip(&self.times[denominator]);
        Middle::of(pairs.map(|(a, b)| a.as_secs_f64() / b.as_secs_f64()).collect())
    }

    /// A contender's time for one of `per_round` iterations, in microseconds.
    #[must_use]
    pub fn microseconds(&self, contender: usize, per_round: u64) -> Middle {
        let one = |time: &Duration| time.as_secs_f64() * 1e6 / per_round as f64;
        Middle::of(self.times[contender].iter().map(one).collect())
    }
}

/// Prints one figure and, where there is a bound for it, whether it is kept.
pub fn print_ratio(what: &str, ratio: Middle, target: Option<Target>) {
    match target {
        None => println!("ratio {what}: {ratio}"),
        Some(target) => {
            let verdict = if target.is_met(ratio.median) { "met" } else { "MISSED" };
            println!("ratio {what}: {ratio}; target {target}: {verdict}");
        }
    }
}

/// A bound that a ratio shall keep.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
}

impl Target {
    fn is_met(self, value: f64) -> bool {
        match self {
            Target::AtMost(bound) => value <= bound,
            Target::AtLeast(bound) => value >= bound,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::AtMost(bound) => write!(out, "at most {bound}"),
            Target::AtLeast(bound) => write!(out, "at least {bound}"),
        }
    }
}
