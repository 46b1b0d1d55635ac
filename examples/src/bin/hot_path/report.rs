//! What was seen, for a person to read at a glance, in at most 100 columns.

use std::fmt::Write;
use std::time::Duration;

use crate::measure::{Plan, Ratio, Row, Seen};
use crate::text::Text;

/// The whole report.
pub(crate) fn report(text: &Text, plan: Plan, seen: &Seen) -> String {
    let mut out = String::new();
    write(&mut out, text, plan, seen).expect("a String takes any text");
    out
}

fn write(out: &mut String, text: &Text, plan: Plan, seen: &Seen) -> std::fmt::Result {
    let Seen { totals, rows, noise, rounds, checks, status, sites, patched } = seen;
    let repeated = match text.repeated {
        1 => String::new(),
        times => format!(", {} times over", number(times as u64)),
    };
    writeln!(
        out,
        "{} {} {}{repeated}: {} bytes, {} lines, {} words, {} in the table",
        plan.threads,
        if plan.threads == 1 { "thread scans" } else { "threads scan" },
        text.name,
        number(totals.bytes),
        number(totals.lines),
        number(totals.words),
        number(totals.matches)
    )?;
    writeln!(
        out,
        "\n{:<17}{:>11}   {:<18}{:>8}{:>10}{:>14}{:>10}",
        "", "MB/s", "of compiled out", "updates", "a second", "one: median", "p99"
    )?;
    let mut group = None;
    for row in rows {
        if group != Some(row.mode) {
            group = Some(row.mode);
            writeln!(out, "{}", row.mode)?;
        }
        let line = line(row);
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(
        out,
        "\nmeasured   one thread by its processor time; medians of {rounds} rounds of turns, ± half of\n\
         {:11}the distance between the quartiles",
        ""
    )?;
    writeln!(out, "noise      compiled out against another copy of its own code: {}", show(noise))?;
    let updates: usize = rows.iter().filter_map(|row| row.updates.as_ref()).map(|u| u.count).sum();
    match status.last.as_ref() {
        Some(last) => {
            let instant = if last.protocol.is_one_instant() {
                "one instant for all threads"
            } else {
                "site by site"
            };
            writeln!(out, "protocol   {} by {}: {instant}", last.protocol, last.writer)?;
            for rejected in &status.rejected {
                writeln!(out, "           not {rejected}")?;
            }
            writeln!(
                out,
                "patched    {} sites in all updates; {sites} exist",
                number(*patched as u64)
            )?;
        }
        None => writeln!(out, "protocol   none: this build reads immediates by plain loads")?,
    }
    writeln!(
        out,
        "verified   lines, words, bytes, matches: as compiled out in all {} pieces of text",
        number(checks.pieces)
    )?;
    writeln!(
        out,
        "           all else: exact in the {} pieces during which no switch changed",
        number(checks.steady)
    )?;
    writeln!(out, "           updates: each of {} was seen", number(updates as u64))
}

fn line(row: &Row) -> String {
    let Row { name, rate, ratio, updates, .. } = row;
    let mut line = format!("  {name:<15}{:>11.1}   {:<18}", rate / 1e6, show(ratio));
    if let Some(updates) = updates {
        let (median, p99) = (show_time(updates.median), show_time(updates.p99));
        let count = number(updates.count as u64);
        let _ = write!(line, "{count:>8}{:>10.0}{median:>14}{p99:>10}", updates.per_second);
    }
    line
}

fn show(ratio: &Ratio) -> String {
    let Ratio { median, spread } = ratio;
    if *median == 1.0 && *spread == 0.0 {
        return "1".into();
    }
    format!("{median:.3} ± {spread:.3}")
}

fn show_time(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 1000.0 { format!("{micros:.1} µs") } else { format!("{:.1} ms", micros / 1e3) }
}

/// With commas: 1,234,567.
fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
