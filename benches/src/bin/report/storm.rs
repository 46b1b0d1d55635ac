//! Disturbance: what readers notice while a setter toggles a variable that they read.
//!
//! Every processor but one runs a reader: operations of about a microsecond that read the variable
//! eight times. The setter toggles by the clock; in every other run it sleeps instead, which is the
//! baseline.

#![allow(unsafe_code)]

use std::hint::black_box;
use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use immediate::{Immediate, immediate, immediate_if};
use immediate_benches::worker::{self, Worker};
use immediate_benches::{processors, system_calls};

use crate::Run;

pub(crate) const ROLE: &str = "storm";

/// Their names in keys, and those that the library knows them by.
pub(crate) const PROTOCOLS: [(&str, &str); 3] =
    [("int3", "int3"), ("quadword", "quadword"), ("stop_world", "stop-world")];
pub(crate) const RATES: [u64; 4] = [1, 100, 1_000, 10_000];

#[immediate]
static SWITCH: Immediate<bool> = Immediate::new(false);
static END: AtomicBool = AtomicBool::new(false);

#[cold]
#[inline(never)]
fn note(hash: u64) {
    black_box(hash);
}

#[inline(never)]
fn operation(text: &[u8; 512]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for piece in text.as_chunks::<64>().0 {
        if immediate_if!(SWITCH) {
            note(hash);
        }
        for byte in piece {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

/// The latencies of one reader, in memory that is there already.
struct Latencies {
    nanoseconds: Vec<u32>,
    count: usize,
}

impl Latencies {
    fn measure(&mut self, barrier: &Barrier) {
        let text = [b'x'; 512];
        self.count = 0;
        barrier.wait();
        let mut before = Instant::now();
        while !END.load(Ordering::Relaxed) && self.count < self.nanoseconds.len() {
            black_box(operation(black_box(&text)));
            let after = Instant::now();
            self.nanoseconds[self.count] =
                (after - before).as_nanos().min(u128::from(u32::MAX)) as u32;
            self.count += 1;
            before = after;
        }
    }
}

/// Toggles so many times a second until the time is over; how often it did.
fn toggle(rate: u64, time: Duration) -> u64 {
    let start = Instant::now();
    let (mut sets, mut value) = (0, false);
    let planned = (time.as_secs_f64() * rate as f64).ceil() as u64;
    for number in 0..planned {
        let next = Duration::from_nanos(number * 1_000_000_000 / rate);
        std::thread::sleep(next.saturating_sub(start.elapsed()));
        if start.elapsed() >= time {
            break;
        }
        // A machine that is busier than the protocol allows for may refuse; then less is done.
        if SWITCH.set(!value).is_ok() {
            value = !value;
            sets += 1;
        }
    }
    std::thread::sleep(time.saturating_sub(start.elapsed()));
    let _ = SWITCH.set(false);
    sets
}

/// Answers `RATE MICROSECONDS` with operations a second, four latencies and sets a second.
pub(crate) fn serve() -> io::Result<()> {
    system_calls::be_patient();
    // SAFETY: lets sleeps of this thread end on time.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let readers = processors::allowed().len().saturating_sub(1).max(1);
    let longest = 2_500_000;
    let mut all: Vec<Latencies> =
        (0..readers).map(|_| Latencies { nanoseconds: vec![1; longest], count: 0 }).collect();
    worker::answer(&format!("{readers} readers"), |words| {
        let [rate, time] = words else { return None };
        let (rate, time) = (rate.parse().ok()?, Duration::from_micros(time.parse().ok()?));
        END.store(false, Ordering::Relaxed);
        let barrier = Barrier::new(readers + 1);
        let (sets, took) = std::thread::scope(|scope| {
            for latencies in &mut all {
                let barrier = &barrier;
                scope.spawn(move || latencies.measure(barrier));
            }
            barrier.wait();
            let start = Instant::now();
            let sets = toggle(rate, time);
            END.store(true, Ordering::Relaxed);
            (sets, start.elapsed().as_secs_f64())
        });
        let mut latencies: Vec<u32> = Vec::new();
        for one in &all {
            latencies.extend_from_slice(&one.nanoseconds[..one.count]);
        }
        latencies.sort_unstable();
        let at = |part: f64| latencies[((latencies.len() - 1) as f64 * part) as usize];
        let rate = latencies.len() as f64 / took;
        let parts = [at(0.5), at(0.99), at(0.999), at(1.0)].map(|time| time.to_string()).join(" ");
        Some(format!("{rate} {parts} {}", sets as f64 / took))
    })
}

/// How long one run takes: at the lowest rate, too, there is a set in it.
fn window(run: &Run<'_>, rate: u64) -> Duration {
    let seconds = if rate == 1 { 0.4 } else { 0.06 };
    run.effort
        .time(seconds)
        .clamp(Duration::from_millis(20), Duration::from_secs_f64(2.0 * seconds))
}

pub(crate) fn run(run: &mut Run<'_>, seconds: f64) {
    let mut workers =
        PROTOCOLS.map(|(_, name)| Worker::again(ROLE, &[("IMMEDIATE_PROTOCOL", name)]));
    let windows = RATES.map(|rate| window(run, rate).as_micros());
    let mut one = |figures: &mut crate::Figures, place: usize, rate: u64, window: u128| {
        let answer = workers[place].ask(&format!("{rate} {window}"));
        let numbers: Vec<f64> = answer.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [operations, p50, p99, p999, max, sets] = numbers[..] else {
            panic!("{answer:?} is no answer of six numbers");
        };
        let path = format!("storm.{}.hz_{rate}", PROTOCOLS[place].0);
        for (name, value) in [("p50", p50), ("p99", p99), ("p999", p999), ("max", max)] {
            figures.add(format!("{path}.{name}_ns"), value);
        }
        figures.add(format!("{path}.operations_per_second"), operations);
        if rate > 0 {
            figures.add(format!("{path}.sets_per_second"), sets);
        }
        operations
    };
    run.repeat(seconds, |figures, _| {
        for (rate, window) in RATES.into_iter().zip(windows) {
            for (place, (protocol, _)) in PROTOCOLS.iter().enumerate() {
                let quiet = one(figures, place, 0, window);
                let toggled = one(figures, place, rate, window);
                let ratio = toggled / quiet;
                figures.add(format!("storm.{protocol}.hz_{rate}.throughput_ratio"), ratio);
            }
        }
    });
}
