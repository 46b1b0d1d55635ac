//! The read side, warm: the loop of `immediate_benches::warm` with each kind of check.

use std::hint::black_box;
use std::io;
use std::time::Instant;

use immediate_benches::processors;
use immediate_benches::warm::{self, HASH, LINES};
use immediate_benches::worker::{self, Worker};

use crate::{Run, turns};

pub(crate) const ROLE: &str = "warm";

/// Answers `hash CONTENDER` and `lines CONTENDER` with nanoseconds in one round of the loop.
pub(crate) fn serve() -> io::Result<()> {
    processors::keep_to_one();
    warm::prepare();
    let text = warm::text();
    worker::answer("ready", |words| {
        let [kind, key] = words else { return None };
        let (loops, passes) = if *kind == "hash" { (&HASH, 2) } else { (&LINES, 4) };
        let contender = loops.iter().find(|contender| contender.key == *key)?;
        let start = Instant::now();
        for _ in 0..passes {
            black_box(contender.run(black_box(&text)));
        }
        let rounds = passes * text.len();
        Some((start.elapsed().as_nanos() as f64 / rounds as f64).to_string())
    })
}

pub(crate) fn run(run: &mut Run<'_>, seconds: f64) {
    let mut worker = Worker::again(ROLE, &[]);
    run.repeat(seconds, |figures, round| {
        for place in turns(round, HASH.len()) {
            let key = HASH[place].key;
            let time = worker.number(&format!("hash {key}"));
            figures.add(format!("read.warm.{key}_ns"), time);
            let time = worker.number(&format!("lines {key}"));
            figures.add(format!("read.vector.{key}_ns"), time);
        }
    });
}
