//! Lets the contenders take turns, round after round, so that drift of the machine hits all alike;
//! checks every count that they make.

use std::fmt;
use std::sync::Barrier;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use immediate::{Error, Status};

use crate::atomics::Atomics;
use crate::clock::Clock;
use crate::compiled::{CompiledIn, CompiledOut};
use crate::controller::{Controller, Talk};
use crate::immediates::{self, Immediates};
use crate::scan::{COPIES, Counts, Totals, copies};
use crate::switches::{Change, OFF, ON, State, Switches};
use crate::text::Text;
use crate::verify::Expected;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seconds: Duration,
    pub(crate) threads: usize,
}

/// What the switches do during a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Off,
    On,
    Flipped,
}

impl fmt::Display for Mode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Mode::Off => "switches off",
            Mode::On => "switches on",
            Mode::Flipped => "switches flipped",
        })
    }
}

/// One kind of switches in one mode.
struct Contender {
    mode: Mode,
    name: &'static str,
    scans: [fn(&[u8]) -> Counts; COPIES],
    apply: fn(&[Change]) -> Result<(), Error>,
    controller: Controller,
    /// Bytes a second of one thread, round by round.
    rates: Vec<f64>,
}

impl Contender {
    fn new<S: Switches>(mode: Mode, name: &'static str) -> Contender {
        Contender {
            mode,
            name,
            scans: copies::<S>(),
            apply: S::apply,
            controller: Controller::new::<S>(),
            rates: Vec::new(),
        }
    }
}

/// The first is what the others are compared with, the last is the first once more, by other copies
/// of its code: it tells the noise.
fn contenders() -> Vec<Contender> {
    let mut again = Contender::new::<CompiledOut>(Mode::Off, "compiled out, again");
    again.scans.rotate_left(1);
    vec![
        Contender::new::<CompiledOut>(Mode::Off, "compiled out"),
        Contender::new::<Immediates>(Mode::Off, "immediates"),
        Contender::new::<Atomics>(Mode::Off, "atomics"),
        Contender::new::<CompiledIn>(Mode::On, "compiled in"),
        Contender::new::<Immediates>(Mode::On, "immediates"),
        Contender::new::<Atomics>(Mode::On, "atomics"),
        Contender::new::<Immediates>(Mode::Flipped, "immediates"),
        Contender::new::<Atomics>(Mode::Flipped, "atomics"),
        again,
    ]
}

const ROUNDS: u32 = 20;
const LEAST_ROUNDS: usize = 3;

/// What was seen in one run.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The text, counted once.
    pub(crate) totals: Totals,
    pub(crate) rows: Vec<Row>,
    /// The contender that the others are compared with, compared with itself.
    pub(crate) noise: Ratio,
    pub(crate) rounds: usize,
    pub(crate) checks: Checks,
    /// How updates of immediates were carried out while threads scanned.
    pub(crate) status: Status,
    /// Sites of the switches, and how often one was changed.
    pub(crate) sites: usize,
    pub(crate) patched: usize,
}

/// What was seen of one contender.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) mode: Mode,
    pub(crate) name: &'static str,
    /// Bytes a second of one thread.
    pub(crate) rate: f64,
    pub(crate) ratio: Ratio,
    pub(crate) updates: Option<Updates>,
}

/// Rate by rate of the first contender in the same round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    pub(crate) median: f64,
    /// Half of the distance between the quartiles.
    pub(crate) spread: f64,
}

/// Updates that were made while threads scanned.
#[derive(Debug)]
pub(crate) struct Updates {
    pub(crate) count: usize,
    pub(crate) per_second: f64,
    pub(crate) median: Duration,
    pub(crate) p99: Duration,
}

/// How many pieces of text were scanned and their counts compared with what is right.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Checks {
    pub(crate) pieces: u64,
    /// Those during which no switch changed, so that every count must be exact.
    pub(crate) steady: u64,
}

/// Measures and verifies.
///
/// # Errors
///
/// One line: a count was wrong, or a switch could not be set.
pub(crate) fn measure(text: &Text, plan: Plan) -> Result<Seen, String> {
    let expected: Vec<Expected> = text.pieces.iter().map(|piece| Expected::of(piece)).collect();
    let mut contenders = contenders();
    let turns = contenders.len();
    let length = (plan.seconds / (ROUNDS * turns as u32))
        .clamp(Duration::from_millis(10), Duration::from_millis(60));
    let mut checks = Checks::default();
    let begin = Instant::now();
    let mut rounds = 0;
    while rounds < LEAST_ROUNDS || begin.elapsed() < plan.seconds {
        for turn in 0..turns {
            // Another one is first in each round, and every other round goes backwards.
            let place = (rounds + turn) % turns;
            let place = if rounds % 2 == 0 { place } else { turns - 1 - place };
            let one = &mut contenders[place];
            take_turn(one, text, &expected, plan.threads, length, &mut checks)
                .map_err(|line| format!("{}, {}: {line}", one.name, one.mode))?;
        }
        rounds += 1;
    }
    Ok(summary(contenders, &expected, rounds, checks))
}

/// What one thread did in a turn.
struct Work {
    /// Bytes a second.
    rate: f64,
    checks: Checks,
}

fn take_turn(
    contender: &mut Contender,
    text: &Text,
    expected: &[Expected],
    threads: usize,
    length: Duration,
    checks: &mut Checks,
) -> Result<(), String> {
    let Contender { mode, scans, apply, controller, rates, .. } = contender;
    let (states, step) = match mode {
        Mode::Off => (vec![OFF], 0),
        Mode::On => (vec![ON], 0),
        Mode::Flipped => (controller.circle.clone(), controller.step),
    };
    let state = states[step as usize % states.len()];
    apply(&state.all()).map_err(|error| error.to_string())?;
    let (talk, barrier) = (&Talk::at(step), &Barrier::new(threads + 1));
    // Round by round another copy.
    let (scan, states) = (scans[rates.len() % COPIES], states.as_slice());
    let work = scope(|scope| {
        let run = |thread: usize| {
            move || {
                // Not all at the same piece.
                let first = thread * text.pieces.len() / threads;
                let job = Job { text, expected, scan, states, talk };
                barrier.wait();
                // Whoever finds a wrong count stops the others.
                job.work(first).inspect_err(|_| talk.stop.store(true, Relaxed))
            }
        };
        let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(run(thread))).collect();
        barrier.wait();
        let flipped = match mode {
            Mode::Off | Mode::On => {
                sleep(length);
                Ok(())
            }
            Mode::Flipped => controller.flip(talk, Instant::now() + length),
        };
        talk.stop.store(true, Relaxed);
        let joined = workers.into_iter().map(|worker| worker.join().expect("a worker panicked"));
        let work: Result<Vec<Work>, String> = joined.collect();
        flipped.and(work)
    })?;
    rates.push(work.iter().map(|one| one.rate).sum::<f64>() / work.len() as f64);
    for one in work {
        checks.pieces += one.checks.pieces;
        checks.steady += one.checks.steady;
    }
    Ok(())
}

/// What a thread does in a turn.
struct Job<'a> {
    text: &'a Text,
    expected: &'a [Expected],
    scan: fn(&[u8]) -> Counts,
    /// The states by step, in a circle.
    states: &'a [State],
    talk: &'a Talk,
}

impl Job<'_> {
    fn work(&self, first: usize) -> Result<Work, String> {
        let mut checks = Checks::default();
        let mut bytes = 0;
        let clock = Clock::start();
        for place in (0..self.text.pieces.len()).cycle().skip(first) {
            let before = self.talk.before();
            let counts = (self.scan)(&self.text.pieces[place]);
            let step = self.talk.after(before);
            let state = step.map(|step| &self.states[step as usize % self.states.len()]);
            self.expected[place]
                .check(&counts, state)
                .map_err(|line| format!("verification failed in piece {place}: {line}"))?;
            bytes += counts.totals.bytes;
            checks.pieces += 1;
            if let Some(step) = step {
                checks.steady += 1;
                self.talk.tell_seen(step);
            }
            if self.talk.stop.load(Relaxed) {
                break;
            }
        }
        Ok(Work { rate: bytes as f64 / clock.elapsed().as_secs_f64(), checks })
    }
}

fn summary(
    contenders: Vec<Contender>,
    expected: &[Expected],
    rounds: usize,
    checks: Checks,
) -> Seen {
    let mut totals = Totals::default();
    for Expected { off, .. } in expected {
        totals.lines += off.totals.lines;
        totals.words += off.totals.words;
        totals.bytes += off.totals.bytes;
        totals.matches += off.totals.matches;
    }
    let base = contenders[0].rates.clone();
    let mut patched = 0;
    let mut status = None;
    let mut rows: Vec<Row> = contenders
        .into_iter()
        .map(|Contender { mode, name, controller, rates, .. }| {
            patched += controller.patched;
            status = status.take().or(controller.status);
            let ratios = rates.iter().zip(&base).map(|(rate, base)| rate / base).collect();
            let updates = (mode == Mode::Flipped).then(|| {
                let (median, p99) = times(controller.updates.clone());
                let count = controller.updates.len();
                let per_second = count as f64 / controller.time.as_secs_f64();
                Updates { count, per_second, median, p99 }
            });
            Row { mode, name, rate: quantile(&sorted(rates), 0.5), ratio: ratio(ratios), updates }
        })
        .collect();
    let noise = rows.pop().expect("the last is the first once more").ratio;
    let status = status.unwrap_or_else(immediate::status);
    let sites = immediates::site_count();
    Seen { totals, rows, noise, rounds, checks, status, sites, patched }
}

fn times(mut updates: Vec<Duration>) -> (Duration, Duration) {
    updates.sort_unstable();
    let at = |part: f64| updates[((updates.len() - 1) as f64 * part).round() as usize];
    (at(0.5), at(0.99))
}

fn ratio(ratios: Vec<f64>) -> Ratio {
    let ratios = sorted(ratios);
    let spread = (quantile(&ratios, 0.75) - quantile(&ratios, 0.25)) / 2.0;
    Ratio { median: quantile(&ratios, 0.5), spread }
}

fn sorted(mut numbers: Vec<f64>) -> Vec<f64> {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers
}

/// Of sorted numbers, with the nearest two weighted.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = (sorted.len() - 1) as f64 * part;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}
