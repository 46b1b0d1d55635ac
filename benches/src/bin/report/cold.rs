//! The memory-hit experiment: `immediate_benches::memory_hit`, in cycles of one round of the loop.

use std::io;

use immediate_benches::memory_hit::{CONTENDERS, table};
use immediate_benches::worker::{self, Worker};
use immediate_benches::{cycles, processors};

use crate::{Run, turns};

pub(crate) const ROLE: &str = "cold";

/// Rounds of the loop in one run.
const LENGTH: u64 = 20_000;

/// Answers `CONTENDER fenced|free` with cycles in one round of the loop.
pub(crate) fn serve() -> io::Result<()> {
    processors::keep_to_one();
    let table = table();
    worker::answer(&format!("{} MB", table.len() >> 20), |words| {
        let [key, kind] = words else { return None };
        let contender = CONTENDERS.iter().find(|contender| contender.key == *key)?;
        let run = if *kind == "fenced" { contender.fenced } else { contender.free };
        let per_tick = cycles::per_tick();
        let start = cycles::begin();
        run(&table, LENGTH);
        let ticks = cycles::end() - start;
        Some((ticks as f64 * per_tick / LENGTH as f64).to_string())
    })
}

pub(crate) fn run(run: &mut Run<'_>, seconds: f64) {
    let mut worker = Worker::again(ROLE, &[]);
    run.repeat(seconds, |figures, round| {
        for place in turns(round, CONTENDERS.len()) {
            let name = CONTENDERS[place].key;
            let fenced = worker.number(&format!("{name} fenced"));
            figures.add(format!("read.cold.{name}_cycles"), fenced);
            let free = worker.number(&format!("{name} free"));
            figures.add(format!("read.cold_overlapped.{name}_cycles"), free);
        }
    });
}
