//! Text for a terminal or a pipe: tables, and JSON.

use std::io::Write;

use serde::Serialize;

use crate::failure::Failure;

pub(crate) const BOLD: &str = "\x1b[1m";
pub(crate) const DIM: &str = "\x1b[2m";
pub(crate) const CHANGED: &str = "\x1b[33m";
pub(crate) const END: &str = "\x1b[0m";

/// Prints a line; colours in it are left out where there is no terminal.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    written(writeln!(anstream::stdout().lock(), "{text}"))
}

/// Prints bytes as they are.
pub(crate) fn raw(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    written(out.write_all(bytes).and_then(|()| out.flush()))
}

fn written(result: std::io::Result<()>) -> Result<(), Failure> {
    result.map_err(|_| Failure::OutputClosed)
}

/// Prints a value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    match serde_json::to_string(value) {
        Ok(text) => written(writeln!(std::io::stdout().lock(), "{text}")),
        Err(error) => Err(Failure::Arguments(format!("the output is no JSON: {error}"))),
    }
}

/// Text that a program gave, without what would move a terminal's cursor.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

/// Prints columns, each as wide as its widest cell; the last is not padded.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        widest.max(head[column].chars().count())
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let join = |cells: Vec<String>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_string()
    };
    let head = head.iter().map(ToString::to_string).collect();
    line(&format!("{BOLD}{}{END}", join(head)))?;
    for row in rows {
        line(&join(row.iter().map(|cell| plain(cell)).collect()))?;
    }
    Ok(())
}
