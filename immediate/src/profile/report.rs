//! What was counted and timed, for people and for other tools.

use std::fmt::{self, Write};

/// What was counted and timed; its text is a table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Each variable behind which something was reached, longest time first.
    pub points: Vec<PointReport>,
    /// Scopes that found their thread's buffer full since the last report: call
    /// [`report`](super::report) more often.
    pub lost: u64,
    pub(super) stacks: Vec<(Vec<&'static str>, u64)>,
}

/// What was reached behind one variable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PointReport {
    /// The variable's name.
    pub name: &'static str,
    /// Hits of [`hit!`](super::hit).
    pub hits: u64,
    /// Scopes of [`timed!`](super::timed) that have ended.
    pub timed: u64,
    /// The shortest of them.
    pub min_nanos: u64,
    /// Half of them took no longer.
    pub median_nanos: u64,
    /// All but one in a hundred took no longer.
    pub p99_nanos: u64,
    /// The longest of them.
    pub max_nanos: u64,
    /// All of them together.
    pub total_nanos: u64,
}

impl Report {
    /// The time of each stack of scopes, without what its inner scopes took, as text that tools for
    /// flame graphs read: names from the outermost on, between semicolons, then microseconds.
    ///
    /// ```
    /// let folded = immediate::profile::report().folded();
    /// assert!(folded.lines().all(|line| line.contains(' ')));
    /// ```
    #[must_use]
    pub fn folded(&self) -> String {
        let mut text = String::new();
        for (stack, nanos) in &self.stacks {
            let names: Vec<String> =
                stack.iter().map(|name| name.replace([';', ' '], "_")).collect();
            // Writing into a `String` succeeds.
            let _ = writeln!(text, "{} {}", names.join(";"), nanos.div_ceil(1000));
        }
        text
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.points.iter().map(|point| point.name.chars().count());
        let width = names.max().unwrap_or(0).max("name".len());
        write!(out, "{:<width$}  {:>10}  {:>10}", "name", "hits", "timed")?;
        for head in ["min", "median", "p99", "max", "total"] {
            write!(out, "  {head:>9}")?;
        }
        for point in &self.points {
            write!(out, "\n{:<width$}  {:>10}  {:>10}", point.name, point.hits, point.timed)?;
            let PointReport { min_nanos, median_nanos, p99_nanos, max_nanos, total_nanos, .. } =
                point;
            for nanos in [min_nanos, median_nanos, p99_nanos, max_nanos, total_nanos] {
                let time = if point.timed == 0 { "-".into() } else { time(*nanos) };
                write!(out, "  {time:>9}")?;
            }
        }
        if self.lost > 0 {
            write!(
                out,
                "\n{} scopes were lost: the report was not called often enough",
                self.lost
            )?;
        }
        Ok(())
    }
}

/// A time with a unit, three or four digits.
fn time(nanos: u64) -> String {
    let nanos = nanos as f64;
    match nanos {
        ..1e3 => format!("{nanos} ns"),
        ..1e6 => format!("{:.1} µs", nanos / 1e3),
        ..1e9 => format!("{:.1} ms", nanos / 1e6),
        _ => format!("{:.2} s", nanos / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        let point = PointReport {
            name: "a.b",
            hits: 3,
            timed: 1,
            min_nanos: 999,
            median_nanos: 1_500,
            p99_nanos: 2_000_000,
            max_nanos: 3_000_000_000,
            total_nanos: 0,
        };
        let counted = PointReport { name: "counted", timed: 0, ..point.clone() };
        let stacks = vec![(vec!["a b", "c"], 1), (vec!["d"], 2_000)];
        let report = Report { points: vec![point, counted], lost: 2, stacks };
        let expected = "\
name           hits       timed        min     median        p99        max      total
a.b               3           1     999 ns     1.5 µs     2.0 ms     3.00 s       0 ns
counted           3           0          -          -          -          -          -
2 scopes were lost: the report was not called often enough";
        assert_eq!(report.to_string(), expected);
        assert_eq!(report.folded(), "a_b;c 1\nd 2\n");
    }
}
