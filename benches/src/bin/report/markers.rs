//! Markers under cache pressure: `immediate_benches::markers`, in cycles of one call.

use std::io;

use immediate_benches::alternate::Middle;
use immediate_benches::markers::{CONTENDERS, PRESSURES, Pressures};
use immediate_benches::worker::{self, Worker};
use immediate_benches::{cycles, processors};

use crate::{Run, turns};

pub(crate) const ROLE: &str = "markers";

/// Calls in one run.
const CALLS: usize = 20;

/// Answers `CONTENDER PRESSURE` with cycles in one call.
pub(crate) fn serve() -> io::Result<()> {
    processors::keep_to_one();
    let pressures = Pressures::new().expect("memory can be made executable");
    worker::answer("ready", |words| {
        let [contender, pressure] = words else { return None };
        let (_, call) = CONTENDERS.iter().find(|(name, _)| name == contender)?;
        let per_tick = cycles::per_tick();
        call();
        let times = (0..CALLS).map(|_| {
            pressures.press(pressure);
            call() as f64
        });
        Some((Middle::of(times.collect()).median * per_tick).to_string())
    })
}

pub(crate) fn run(run: &mut Run<'_>, seconds: f64) {
    let mut worker = Worker::again(ROLE, &[]);
    run.repeat(seconds, |figures, round| {
        for pressure in PRESSURES {
            for place in turns(round, CONTENDERS.len()) {
                let name = CONTENDERS[place].0;
                let cycles = worker.number(&format!("{name} {pressure}"));
                figures.add(format!("markers.{name}.{pressure}_cycles"), cycles);
            }
        }
    });
}
