//! A real hot path with switches: several threads scan text line by line and count, while a
//! controller flips what they shall profile, log, refuse and look words up in.
//!
//! The same scanning code is compiled once for each kind of switch (`switches.rs`): compiled out,
//! compiled in, immediate values (`immediates.rs`), relaxed atomics (`atomics.rs`). `measure.rs`
//! lets them take turns, `verify.rs` compares every count with that of the code whose switches are
//! compiled out, `report.rs` prints what was seen.

mod atomics;
mod clock;
mod compiled;
mod controller;
mod immediates;
mod measure;
mod report;
mod scan;
mod switches;
mod table;
mod text;
mod verify;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::Duration;

use clap::Parser;

use crate::measure::Plan;
use crate::text::Text;

/// Measures a real hot path with switches: compiled out, as immediate values, as atomics.
///
/// Several threads scan text line by line and count lines, words, bytes, long lines and the words
/// that are in a table. Four profiling toggles, a verbosity, a limit and the pointer to the table
/// are switches. By turns all of them are off, all are on, and a controller flips them hundreds of
/// times a second.
///
/// Every count is compared with that of the same code with the switches compiled out.
#[derive(Debug, Parser)]
#[command(name = "hot_path", version, after_help = AFTER)]
struct Options {
    /// Text to scan, taken as bytes; a sample text if no file is named
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// How long to measure, in seconds from 0.1 to 3600
    #[arg(long, value_name = "N", default_value = "8", value_parser = seconds)]
    seconds: Duration,

    /// How many threads scan, from 1 to 1024 [default: one a processor, at least 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

const AFTER: &str = "\
Environment:
  IMMEDIATE_PROTOCOL=int3|quadword   change code by this protocol only

Exit status: 0 when every count was verified, 1 when one was wrong or a switch could not be set,
2 when the command or a file cannot be used.";

fn seconds(text: &str) -> Result<Duration, &'static str> {
    let valid = "give a number of seconds from 0.1 to 3600";
    let seconds: f64 = text.parse().map_err(|_| valid)?;
    if (0.1..=3600.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(valid)
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let text = match Text::read(&options.files) {
        Ok(text) => text,
        Err(line) => return fail(&line, 2),
    };
    let threads = options.threads.map_or_else(
        || available_parallelism().map_or(2, |processors| processors.get().clamp(2, 1024)),
        usize::from,
    );
    let plan = Plan { seconds: options.seconds, threads };
    match measure::measure(&text, plan) {
        Ok(seen) => {
            // Whoever reads the report may close the pipe early.
            let _ = std::io::stdout().write_all(report::report(&text, plan, &seen).as_bytes());
            ExitCode::SUCCESS
        }
        Err(line) => fail(&line, 1),
    }
}

fn fail(line: &str, status: u8) -> ExitCode {
    eprintln!("hot_path: {line}");
    ExitCode::from(status)
}
