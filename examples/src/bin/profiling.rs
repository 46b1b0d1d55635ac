//! Profiling toggles: four kinds of work, each timed behind a switch of its own that is off.
//!
//! Run it, and switch a profile on by name, before or while it runs:
//!
//! ```text
//! IMMEDIATE=profile.sort=on,profile.sum=on cargo run -p immediate-examples --bin profiling
//! immediate -p profiling set profile.sleep=on
//! ```
//!
//! At the end it prints the table of what was on, and with `--flame FILE` it draws a flame graph.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::Parser;
use immediate::profile::{self, Report};
use immediate::{Immediate, control, immediate};

/// Times a whole request.
#[immediate(name = "profile.request")]
static REQUEST: Immediate<bool> = Immediate::new(false);
/// Times sorting.
#[immediate(name = "profile.sort")]
static SORT: Immediate<bool> = Immediate::new(false);
/// Times adding up, and counts the numbers.
#[immediate(name = "profile.sum")]
static SUM: Immediate<bool> = Immediate::new(false);
/// Times waiting.
#[immediate(name = "profile.sleep")]
static SLEEP: Immediate<bool> = Immediate::new(false);

#[derive(Parser)]
#[command(about = "Work whose parts are timed behind switches")]
struct Arguments {
    /// How many requests each thread carries out.
    #[arg(long, default_value_t = 300)]
    requests: u64,
    /// How many threads.
    #[arg(long, default_value_t = 2)]
    threads: u64,
    /// Write the stacks, folded, to this file.
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    /// Draw a flame graph, as SVG, into this file.
    #[arg(long, value_name = "FILE")]
    flame: Option<PathBuf>,
}

fn numbers(seed: u64) -> Vec<u64> {
    (0..2000).map(|place: u64| (place + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

fn request(seed: u64) -> u64 {
    profile::timed!(REQUEST, {
        let mut numbers = numbers(seed);
        profile::timed!(SORT, numbers.sort_unstable());
        let sum = profile::timed!(SUM, sum(&numbers));
        profile::timed!(SLEEP, thread::sleep(Duration::from_micros(100)));
        sum
    })
}

fn sum(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |sum: u64, number| {
        profile::hit!(SUM);
        sum.wrapping_add(*number)
    })
}

fn write(report: &Report, arguments: &Arguments) -> io::Result<()> {
    let folded = report.folded();
    if let Some(path) = &arguments.folded {
        std::fs::write(path, &folded)?;
    }
    let Some(path) = &arguments.flame else { return Ok(()) };
    if folded.is_empty() {
        return Err(io::Error::other(
            "nothing was timed, so there is no flame graph; switch a profile on, as in \
             IMMEDIATE=profile.request=on",
        ));
    }
    let mut options = inferno::flamegraph::Options::default();
    options.title = "profiling".into();
    options.count_name = "µs".into();
    let file = BufWriter::new(File::create(path)?);
    inferno::flamegraph::from_lines(&mut options, folded.lines(), file).map_err(io::Error::other)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // It works as well where no socket can be made.
    let control = control::serve();
    if let Err(error) = &control {
        eprintln!("profiling: {error}");
    }
    let sum = thread::scope(|scope| {
        let threads: Vec<_> = (0..arguments.threads)
            .map(|_| {
                scope.spawn(|| (0..arguments.requests).map(request).fold(0, u64::wrapping_add))
            })
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).fold(0, u64::wrapping_add)
    });
    let report = profile::report();
    println!("{} requests, sum {sum:x}", arguments.requests * arguments.threads);
    if report.points.is_empty() {
        println!("nothing was switched on; try IMMEDIATE=profile.request=on,profile.sort=on");
    } else {
        println!("{report}");
    }
    if let Err(error) = write(&report, &arguments) {
        eprintln!("profiling: {error}");
        return ExitCode::from(2);
    }
    ExitCode::SUCCESS
}
