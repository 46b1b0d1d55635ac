//! The arguments.

use clap::{Parser, ValueEnum};
use immediate::{Protocol, Writer};

/// Reads, sets, forks, strikes and makes threads, all at once, and checks every read.
#[derive(Debug, Parser)]
pub(crate) struct Options {
    /// How long.
    #[arg(long, default_value_t = 10.0)]
    pub(crate) seconds: f64,
    /// How many threads read without pause.
    #[arg(long, default_value_t = 4)]
    pub(crate) threads: usize,
    /// Use this protocol and no other: int3, quadword, stop-world, single.
    #[arg(long, value_parser = protocol)]
    pub(crate) protocol: Option<Protocol>,
    /// Use this writer and no other: mprotect, procmem.
    #[arg(long, value_parser = writer)]
    pub(crate) writer: Option<Writer>,
    /// Lets one reader see a wrong value after a while, to show that it would be noticed.
    #[arg(long, hide = true)]
    pub(crate) wrong: Option<Wrong>,
}

/// What one reader sees wrongly, when the program is to show that it notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Wrong {
    /// One byte of another value.
    Mixture,
    /// A value that a later set has replaced.
    Older,
    /// The wrong side of a branch.
    Branch,
}

fn protocol(text: &str) -> Result<Protocol, String> {
    let all = [Protocol::CHOICES, &[Protocol::Single]].concat();
    one_of(text, &all, Protocol::name)
}

fn writer(text: &str) -> Result<Writer, String> {
    one_of(text, Writer::ALL, Writer::name)
}

fn one_of<T: Copy>(text: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T, String> {
    let names: Vec<_> = all.iter().map(|one| name(*one)).collect();
    let found = all.iter().find(|one| name(**one) == text);
    found.copied().ok_or_else(|| format!("give {}", names.join(" or ")))
}
