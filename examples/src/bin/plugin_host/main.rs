//! A host that serves requests through two plugins, one in Rust and one in C, while it flips toggles
//! that all three share, swaps a plugin for a newer build, and unloads:
//!
//! `cargo run -p immediate-examples --bin plugin_host`
//!
//! It builds the plugins first, with cargo and the C compiler, prints what it does, and checks every
//! answer and every count.

mod build;
mod served;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use clap::Parser;
use immediate::{Batch, Immediate, immediate, immediate_if, immediate_read};

use served::{Served, Slot};

/// Counts the requests that are served, here and in the plugins.
#[immediate(shared, name = "host.profile")]
static PROFILE: Immediate<bool> = Immediate::new(false);

/// How often a plugin mixes a number.
#[immediate(shared, name = "host.rounds")]
static ROUNDS: Immediate<u32> = Immediate::new(1);

/// Requests that the host itself has counted.
static PROFILED: AtomicU64 = AtomicU64::new(0);

/// Serves requests through plugins that come and go.
#[derive(Parser)]
struct Options {
    /// Requests between two steps.
    #[arg(long, default_value_t = 20_000)]
    requests: u64,
    /// Threads that send requests.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

type Failure = Box<dyn std::error::Error>;

/// Sends requests to both slots until it is over, and checks each answer.
fn send(slots: &[Slot; 2], sent: &AtomicU64, is_over: &AtomicBool) -> Result<(), String> {
    let mut number = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        number += 1;
        for slot in slots {
            let Some(plugin) = slot.get() else { continue };
            if immediate_if!(PROFILE) {
                PROFILED.fetch_add(1, Ordering::Relaxed);
            }
            let answer = plugin.serve(number);
            // `host.rounds` may change while a request is served, from one value that the host sets
            // to the other.
            if !ROUNDS_SET.iter().any(|rounds| plugin.expected(number, *rounds) == answer) {
                return Err(format!("{} answered {answer} to {number}", plugin.name()));
            }
            sent.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// What the host sets `host.rounds` to.
const ROUNDS_SET: [u32; 2] = [1, 5];

fn main() -> Result<(), Failure> {
    let options = Options::parse();
    println!("building the plugins");
    let built = build::all()?;
    let (sent, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let slots = [Slot::new(), Slot::new()];
    thread::scope(|scope| {
        let senders: Vec<_> = (0..options.threads.max(1))
            .map(|_| scope.spawn(|| send(&slots, &sent, &is_over)))
            .collect();
        let wait = || {
            let until = sent.load(Ordering::Relaxed) + options.requests;
            while sent.load(Ordering::Relaxed) < until
                && !senders.iter().any(thread::ScopedJoinHandle::is_finished)
            {
                thread::yield_now();
            }
        };
        let result = steps(&built, &slots, &wait);
        is_over.store(true, Ordering::Relaxed);
        for sender in senders {
            sender.join().expect("a sender does not panic")?;
        }
        result
    })?;
    println!("{} requests, every answer right", sent.load(Ordering::Relaxed));
    println!("checked");
    Ok(())
}

fn steps(built: &build::Built, slots: &[Slot; 2], wait: &dyn Fn()) -> Result<(), Failure> {
    let [rust, c] = slots;
    println!("\nload both plugins");
    rust.replace(Some(Served::load(&built.older)?))?;
    c.replace(Some(Served::load(&built.in_c)?))?;
    show();
    wait();
    counted("toggle off", rust, c, |count| count == 0)?;

    println!("\nset host.profile and host.rounds, for the host and both plugins at one instant");
    Batch::new().set(&PROFILE, true).set(&ROUNDS, ROUNDS_SET[1]).apply()?;
    wait();
    counted("toggle on", rust, c, |count| count > 0)?;
    check(rust.ask(|plugin| plugin.serve(7) == plugin.expected(7, ROUNDS_SET[1])), "rounds")?;

    println!("\nswap the plugin in Rust for a newer build, while requests come in");
    let gone = rust.replace(Some(Served::load(&built.newer)?))?;
    check(gone, "the older build is unmapped")?;
    println!("  version {} serves now", rust.ask(Served::version));
    check(rust.ask(Served::version) == 2, "the newer build serves")?;
    wait();
    counted("the toggle was on before it came", rust, c, |count| count > 0)?;

    println!("\nunload the plugin in C");
    check(c.replace(None)?, "it is unmapped")?;
    show();
    wait();

    println!("\nset host.profile by its name, as another program would");
    immediate::lookup("host.profile")?.set_text("false")?;
    // Requests that had begun may still be counted.
    wait();
    let before = (rust.ask(Served::profiled), PROFILED.load(Ordering::Relaxed));
    wait();
    let after = (rust.ask(Served::profiled), PROFILED.load(Ordering::Relaxed));
    check(before == after && !immediate_read!(PROFILE), "nothing is counted any more")?;

    println!("\nunload the last plugin");
    check(rust.replace(None)?, "it is unmapped")?;
    show();
    check(immediate::modules().count() == 1, "only the host is left")
}

fn check(is_right: bool, what: &str) -> Result<(), Failure> {
    if is_right { Ok(()) } else { Err(format!("not so: {what}").into()) }
}

fn counted(
    when: &str,
    rust: &Slot,
    c: &Slot,
    is_right: impl Fn(u64) -> bool,
) -> Result<(), Failure> {
    let counts =
        [PROFILED.load(Ordering::Relaxed), rust.ask(Served::profiled), c.ask(Served::profiled)];
    let [host, in_rust, in_c] = counts;
    println!("  {when}: {host} requests counted by the host, {in_rust} by Rust, {in_c} by C");
    check(counts.into_iter().all(is_right), when)
}

/// Prints what is loaded.
fn show() {
    for module in immediate::modules() {
        let name = std::path::Path::new(&module.path).file_name().unwrap_or_default();
        println!(
            "  {:24} {} variables, {} sites at {:#x}",
            name.display(),
            module.variables,
            module.sites,
            module.base
        );
    }
}
