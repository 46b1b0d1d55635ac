//! The command `immediate`: operates running programs that serve by `immediate::control`, and looks
//! into files.

mod arguments;
mod client;
mod failure;
mod inspect;
mod list;
mod output;
mod set;
mod status;
mod top;
mod watch;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::{CommandFactory, Parser};
use failure::Failure;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has seen enough, as `head` has.
        Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report(arguments.json);
            ExitCode::from(failure.code())
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let target = &arguments.target;
    let json = arguments.json;
    match &arguments.command {
        Command::List { patterns, programs, long } => {
            list::list(target, patterns, *programs, *long, json)
        }
        Command::Get { names } => list::get(target, names, json),
        Command::Set { assignments, time } => set::set(target, assignments, *time, json),
        Command::Watch { patterns, every, count } => {
            watch::watch(target, patterns, *every, *count, json)
        }
        Command::Status => status::status(target, json),
        Command::Top { patterns, every } => top::top(target, patterns, *every),
        Command::Inspect { file, verify, diff } => inspect::inspect(file, *verify, *diff, json),
        Command::Completions { shell } => {
            let mut bytes = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "immediate", &mut bytes);
            output::raw(&bytes)
        }
    }
}
