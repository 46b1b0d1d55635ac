//! The report: every experiment, every contender, in one run, with the machine that it ran on.
//!
//! `report.json`, `report.md` and the plots go to `target/report`. The experiments run in children
//! of this process, one at a time; the contenders of an experiment take turns, so that whatever drifts
//! on the machine hits all alike.

mod cold;
mod effort;
mod figures;
mod machine;
mod markdown;
mod markers;
mod plots;
mod programs;
mod register;
mod size;
mod storm;
mod targets;
mod token;
mod update;
mod warm;

use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;
use immediate_benches::worker;
use indicatif::{ProgressBar, ProgressStyle};

use effort::Effort;
use figures::Figures;
use programs::Programs;

/// Measures immediate values and their peers, and writes a report.
#[derive(Parser)]
struct Arguments {
    /// Ends within a minute; the figures vary more.
    #[arg(long)]
    quick: bool,
    /// Each experiment once, to see that it works; the figures say nothing.
    #[arg(long, hide = true)]
    smoke: bool,
    /// Where the report goes [default: target/report].
    #[arg(long)]
    output: Option<PathBuf>,
    /// Where the other programs of this package lie, built; without it cargo builds them.
    #[arg(long, hide = true)]
    programs: Option<PathBuf>,
}

/// An experiment: its name, the seconds that it has in a quick run, and what it does.
type Experiment = (&'static str, f64, fn(&mut Run<'_>, f64));

/// All of them, in the order of the report.
const EXPERIMENTS: [Experiment; 9] = [
    ("memory hit", 3.0, cold::run),
    ("markers under pressure", 6.0, markers::run),
    ("token and clock", 2.5, token::run),
    ("read side, warm", 3.0, warm::run),
    ("update side", 15.0, update::run),
    ("disturbance", 9.0, storm::run),
    ("size", 5.0, size::run),
    ("start-up", 0.5, register::run),
    ("growth", 2.0, update::growth),
];

/// What an experiment has at hand.
struct Run<'a> {
    effort: Effort,
    figures: &'a mut Figures,
    programs: &'a Programs,
    bar: &'a ProgressBar,
}

impl Run<'_> {
    /// Repeats `round` for so many seconds of a quick run; at least as often as the effort says, unless
    /// a busy machine makes that twice as long.
    fn repeat(&mut self, seconds: f64, mut round: impl FnMut(&mut Figures, usize)) {
        let (began, time) = (Instant::now(), self.effort.time(seconds));
        let mut rounds = 0;
        loop {
            let enough = if rounds < self.effort.least_rounds() { time * 2 } else { time };
            if rounds > 0 && began.elapsed() >= enough {
                break;
            }
            let start = Instant::now();
            round(self.figures, rounds);
            self.bar.inc(start.elapsed().as_millis() as u64);
            rounds += 1;
        }
    }
}

/// The places `0..count`, another one first in each round.
fn turns(round: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |turn| (round + turn) % count)
}

fn serve(role: &str) -> std::io::Result<()> {
    match role {
        cold::ROLE => cold::serve(),
        markers::ROLE => markers::serve(),
        token::ROLE => token::serve(),
        warm::ROLE => warm::serve(),
        storm::ROLE => storm::serve(),
        _ => Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, role)),
    }
}

fn main() -> std::io::Result<()> {
    if let Some(role) = worker::role() {
        return serve(&role);
    }
    let arguments = Arguments::parse();
    let effort = match arguments {
        Arguments { smoke: true, .. } => Effort::Smoke,
        Arguments { quick: true, .. } => Effort::Quick,
        _ => Effort::Full,
    };
    if !programs::CAN_PATCH {
        println!("this build has plain loads and no sites: there is nothing to compare");
        return Ok(());
    }
    let start = Instant::now();
    let programs = Programs::find(arguments.programs)?;
    let output = arguments.output.unwrap_or_else(|| programs.target().join("report"));
    std::fs::create_dir_all(&output)?;
    let machine = machine::Machine::describe();

    let seconds: f64 = EXPERIMENTS.iter().map(|(_, seconds, _)| seconds).sum();
    let bar = ProgressBar::new(effort.time(seconds).as_millis() as u64);
    let style = "{msg:24} {wide_bar} {percent:>3}% {elapsed}";
    bar.set_style(ProgressStyle::with_template(style).expect("the template is well formed"));
    let mut figures = Figures::default();
    for (name, seconds, experiment) in EXPERIMENTS {
        bar.set_message(name);
        let start = Instant::now();
        experiment(
            &mut Run { effort, figures: &mut figures, programs: &programs, bar: &bar },
            seconds,
        );
        let path = format!("experiment_seconds.{}", name.replace([' ', ','], "_"));
        figures.add(path, start.elapsed().as_secs_f64());
    }
    bar.finish_and_clear();

    let targets = targets::all(&figures);
    let took = start.elapsed().as_secs_f64();
    let json = figures.json(effort, took, &machine, &targets);
    std::fs::write(output.join("report.json"), json)?;
    let plots = plots::draw(&figures, &output)?;
    let text = markdown::report(&figures, effort, took, &machine, &targets, &plots);
    std::fs::write(output.join("report.md"), text)?;
    targets.iter().for_each(|target| println!("{target}"));
    println!("{:.0} s; {}", took, output.join("report.md").display());
    Ok(())
}
