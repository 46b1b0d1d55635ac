//! The update side: sets of 1 to 100,000 sites by each protocol and writer while 0 to 15 threads run
//! through them, the system calls of such a set on their own, and `static-keys`; and what a set costs
//! when the program has many other sites.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use immediate_benches::one_site::{ALONE, RUNNING, SET};
use immediate_benches::worker::Worker;

use crate::{Run, turns};

/// The name of a protocol in keys and in the library, the writer, and whether it goes with threads.
pub(crate) const WAYS: [(&str, &str, &str, bool); 7] = [
    ("single", "single", "mprotect", false),
    ("single", "single", "procmem", false),
    ("int3", "int3", "mprotect", true),
    ("int3", "int3", "procmem", true),
    ("quadword", "quadword", "mprotect", true),
    ("stop_world", "stop-world", "mprotect", true),
    ("stop_world", "stop-world", "procmem", true),
];
pub(crate) const SITES: [u64; 5] = [1, 100, 1_000, 10_000, 100_000];
pub(crate) const THREADS: [u64; 4] = [0, 1, 3, 15];

/// The writer `procmem` makes three system calls a site: beyond this many sites a set takes a second,
/// which nobody would choose.
const MOST_BY_PROCMEM: u64 = 10_000;

/// What is asked of a worker again and again.
struct Cell {
    worker: usize,
    path: String,
    request: String,
    spent: Duration,
}

/// A store into an atomic, in microseconds: what a set replaces.
fn store() -> f64 {
    static ATOMIC: AtomicBool = AtomicBool::new(false);
    const STORES: u32 = 10_000;
    let start = Instant::now();
    for number in 0..STORES {
        black_box(&ATOMIC).store(number % 2 == 0, Ordering::Relaxed);
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(STORES)
}

pub(crate) fn run(run: &mut Run<'_>, seconds: f64) {
    let program = run.programs.path("sites");
    let mut workers: Vec<Worker> = WAYS
        .iter()
        .map(|(_, protocol, writer, _)| {
            let settings = [("IMMEDIATE_PROTOCOL", *protocol), ("IMMEDIATE_WRITER", *writer)];
            Worker::start(&program, "immediates", &settings)
        })
        .collect();
    workers.push(Worker::start(&program, "keys", &[]));
    let keys = workers.len() - 1;
    // So long the sets of one request go on, in microseconds: twenty of the shortest and more.
    let time = match run.effort {
        crate::Effort::Smoke => 1,
        _ => 1_000,
    };
    for threads in THREADS {
        let mut cells = Vec::new();
        for (worker, (name, _, writer, goes_with_threads)) in WAYS.iter().enumerate() {
            if threads > 0 && !goes_with_threads {
                continue;
            }
            workers[worker].ask(&format!("threads {threads}"));
            for sites in SITES {
                if *writer == "procmem" && sites > MOST_BY_PROCMEM {
                    continue;
                }
                cells.push(Cell {
                    worker,
                    path: format!("update.{name}.{writer}.sites_{sites}.threads_{threads}_us"),
                    request: format!("set {sites} {time}"),
                    spent: Duration::ZERO,
                });
            }
            // Once for each protocol, in the process that makes such sets.
            let kinds: &[&str] = match (*name, *writer) {
                ("single", "mprotect") => &["single"],
                ("int3", "mprotect") => &["int3", "int3_all"],
                ("quadword", "mprotect") => &["quadword", "quadword_all"],
                ("stop_world", "mprotect") => &["stop_world"],
                _ => &[],
            };
            for kind in kinds {
                let path = match kind.strip_suffix("_all") {
                    None => format!("update.floor.{kind}.threads_{threads}_us"),
                    Some(kind) => format!("update.floor_all.{kind}.threads_{threads}_us"),
                };
                let request = format!("calls {kind} {time}");
                cells.push(Cell { worker, path, request, spent: Duration::ZERO });
            }
        }
        if threads == 0 {
            cells.extend(SITES.map(|sites| Cell {
                worker: keys,
                path: format!("update.static_keys.sites_{sites}_us"),
                request: format!("set {sites} {time}"),
                spent: Duration::ZERO,
            }));
        }
        // A set of many sites is slow, and its time varies less: no more than its share for each.
        let share = run.effort.time(seconds) / (THREADS.len() * cells.len()) as u32;
        run.repeat(seconds / THREADS.len() as f64, |figures, round| {
            for place in turns(round, cells.len()) {
                let cell = &mut cells[place];
                if round > 0 && cell.spent > share {
                    continue;
                }
                let start = Instant::now();
                let nanoseconds = workers[cell.worker].number(&cell.request);
                cell.spent += start.elapsed();
                figures.add(&*cell.path, nanoseconds / 1_000.0);
            }
            if threads == 0 {
                figures.add("update.atomic_store_us", store());
            }
        });
    }
}

/// The numbers of other sites, and the programs that have them.
pub(crate) const OTHERS: [(u64, &str); 3] =
    [(1, "growth_few"), (1_000, "growth_thousand"), (1_000_000, "growth_million")];

/// How often a run is repeated in which the setter or the reader had to wait for a processor.
const PATIENCE: u32 = 5;

/// Sets in one run.
const SETS: u64 = 10;

pub(crate) fn growth(run: &mut Run<'_>, seconds: f64) {
    for (role, path) in [(RUNNING, "growth"), (ALONE, "growth_alone")] {
        let mut workers = OTHERS.map(|(_, program)| {
            Worker::start(&run.programs.path(program), role, &[]).with_patience(PATIENCE)
        });
        run.repeat(seconds / 2.0, |figures, round| {
            for place in turns(round, OTHERS.len()) {
                let time = workers[place].time(SET, SETS).as_secs_f64() * 1e6 / SETS as f64;
                figures.add(format!("{path}.others_{}_us", OTHERS[place].0), time);
            }
        });
    }
}
