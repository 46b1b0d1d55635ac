//! Everything at once, for as long as one likes: readers of every width and of every kind of branch
//! check what they read, while others set, lock, fork, strike with signals, make and join threads, and
//! load and unload a plugin.
//!
//! ```text
//! cargo build --release -p immediate-tests --example torture_plugin
//! cargo run --release -p immediate-tests --bin torture -- --seconds 60 --threads 4
//! ```
//!
//! Exit status: 0 if nothing went wrong, 1 at the first violation (a line names site, values and
//! thread), 2 for arguments that make no sense, 3 where the protocol or the writer that was asked
//! for cannot be used.

mod disturb;
mod options;
mod plugin;
mod readers;
mod setters;
mod sites;
mod violation;

use std::process::ExitCode;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::Parser;
use immediate::{Config, Protocol};
use immediate_arch::isa::imp;
use immediate_tests::maps;

use options::Options;
use violation::Violation;

/// Whether the run is over.
static STOP: AtomicBool = AtomicBool::new(false);
static READS: AtomicU64 = AtomicU64::new(0);

/// The longest that a thread may take to end once it has been told.
const PATIENCE: Duration = Duration::from_secs(30);
/// Where the protocol or the writer that was asked for cannot be used.
const CANNOT: u8 = 3;

/// Whether variables are read at sites, and not by plain loads.
const HAS_SITES: bool = imp::MAX_VALUE > 0;

fn is_over() -> bool {
    STOP.load(SeqCst)
}

fn main() -> ExitCode {
    let options = Options::parse();
    let config = Config {
        protocol: options.protocol,
        writer: options.writer,
        stop_within: Some(PATIENCE / 3),
        ..Config::default()
    };
    if let Err(error) = immediate::configure(config) {
        eprintln!("torture: {error}");
        return ExitCode::from(CANNOT);
    }
    if let Some(line) = what_cannot_be_done(&options) {
        eprintln!("torture: {line}");
        return ExitCode::from(CANNOT);
    }
    let begun = Instant::now();
    let threads = start(&options);
    // One long sleep would be longer by all the time for which this thread is stopped.
    while begun.elapsed() < Duration::from_secs_f64(options.seconds) {
        std::thread::sleep(Duration::from_millis(10));
    }
    STOP.store(true, SeqCst);
    join(threads);
    look_at_the_end();
    report(begun.elapsed());
    ExitCode::SUCCESS
}

/// One line if what was asked for cannot be used, told by a process with a second thread.
fn what_cannot_be_done(options: &Options) -> Option<String> {
    if !HAS_SITES {
        let asked = options.protocol.is_some() || options.writer.is_some();
        return asked
            .then(|| "this build has no sites, so neither protocol nor writer".to_string());
    }
    let (told, hear) = std::sync::mpsc::channel::<()>();
    let second = std::thread::spawn(move || hear.recv());
    let status = immediate::status();
    drop(told);
    let _ = second.join();
    status.refusal.map(|refusal| refusal.to_string())
}

fn start(options: &Options) -> Vec<JoinHandle<()>> {
    // Without a protocol of its own, the ladder is climbed up and down as well, by a thread that
    // blocks every signal now and then; `quadword`, which is taken then, gives no instant.
    let climbs = options.protocol.is_none();
    // A value that is wider than the sites of its target is read from memory, which is no part of it.
    let one_instant = options.protocol.is_some_and(Protocol::is_one_instant)
        && imp::MAX_VALUE >= size_of::<u64>();
    disturb::install_handlers();
    let mut threads = Vec::new();
    for index in 0..options.threads {
        let wrong = options.wrong.filter(|_| index == 0);
        threads.push(std::thread::spawn(move || readers::run(index, one_instant, wrong)));
    }
    threads.push(std::thread::spawn(setters::batches));
    threads.push(std::thread::spawn(setters::singles));
    threads.extend((0..2).map(|_| std::thread::spawn(setters::under_the_lock)));
    threads.push(std::thread::spawn(disturb::fork_over_and_over));
    threads.push(std::thread::spawn(disturb::strike));
    threads.push(std::thread::spawn(disturb::come_and_go));
    match plugin::path() {
        Some(path) => threads.push(std::thread::spawn(move || plugin::load_and_unload(&path))),
        None if HAS_SITES => println!(
            "no plugin is loaded: build it by `cargo build -p immediate-tests --example \
             torture_plugin`, with --release if this program is\n"
        ),
        None => {}
    }
    if climbs {
        threads.push(std::thread::spawn(disturb::block_now_and_then));
    }
    threads
}

fn join(threads: Vec<JoinHandle<()>>) {
    let deadline = Instant::now() + PATIENCE;
    for thread in threads {
        while !thread.is_finished() {
            if Instant::now() > deadline {
                violation::exit(&Violation::of_program("a thread hangs"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if thread.join().is_err() {
            violation::exit(&Violation::of_program("a thread panicked, see above"));
        }
    }
}

/// What has to hold when all is quiet again.
fn look_at_the_end() {
    setters::look_at_what_is_listed();
    // Memory that is of no file may be that of a tool which translates the program's code.
    let is_text = |mapping: &maps::Mapping| mapping.path.starts_with('/');
    if maps::all().iter().any(|mapping| is_text(mapping) && mapping.protection.starts_with("rwx")) {
        violation::exit(&Violation::of_program("text has stayed writable"));
    }
    let status = immediate::status();
    if status.last.is_some_and(|last| last.trapping > 0) {
        violation::exit(&Violation::of_program("a site has kept its trap"));
    }
}

fn report(elapsed: Duration) {
    println!("{}\n", immediate::status());
    println!("seconds    {:.1}", elapsed.as_secs_f64());
    println!("reads      {}", READS.load(SeqCst));
    let (updates, refused) = (setters::UPDATES.load(SeqCst), setters::REFUSED.load(SeqCst));
    println!("updates    {updates}, and {refused} were refused and changed nothing");
    let refusal = setters::REFUSAL.lock().unwrap_or_else(PoisonError::into_inner);
    if !refusal.is_empty() {
        println!("refused    {refusal}");
    }
    println!(
        "traps      {} rounds of a reader were trapped or stopped",
        readers::CAUGHT.load(SeqCst)
    );
    let (forks, struck, made) =
        (disturb::FORKS.load(SeqCst), disturb::HANDLED.load(SeqCst), disturb::MADE.load(SeqCst));
    let loaded = plugin::LOADED.load(SeqCst);
    println!(
        "besides    {forks} forks, {struck} signals handled, {made} threads made, {loaded} plugins loaded"
    );
    println!("violations 0");
}
