//! What has been collected from the buffers of all threads.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hdrhistogram::Histogram;

use super::point::MAX_POINTS;
use super::report::{PointReport, Report};
use super::ring::{Event, Ring};

static COLLECTOR: Mutex<Collector> =
    Mutex::new(Collector { points: Vec::new(), threads: Vec::new(), stacks: BTreeMap::new() });

pub(super) fn lock() -> MutexGuard<'static, Collector> {
    COLLECTOR.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct Collector {
    /// By number.
    points: Vec<Collected>,
    threads: Vec<Thread>,
    /// Time in the innermost scope, in nanoseconds, by the numbers of the points from the bottom on.
    stacks: BTreeMap<Vec<u32>, u64>,
}

struct Collected {
    name: &'static str,
    /// Hits of threads that have ended, less those before the last reset.
    hits: u64,
    times: Histogram<u64>,
    total_nanos: u64,
}

struct Thread {
    ring: Arc<Ring>,
    /// The stack of each node.
    nodes: HashMap<u32, Vec<u32>>,
    /// Lost scopes and hits that have been counted already, or forgotten.
    lost: u64,
    hits: Vec<u64>,
}

/// Three digits of a time are kept.
const DIGITS: u8 = 3;

impl Collector {
    /// The number of the variable with this name.
    pub(super) fn number(&mut self, name: &'static str) -> Option<u32> {
        if let Some(known) = self.points.iter().position(|point| point.name == name) {
            return Some(known as u32);
        }
        if self.points.len() >= MAX_POINTS {
            return None;
        }
        let times = Histogram::new(DIGITS).ok()?;
        self.points.push(Collected { name, hits: 0, times, total_nanos: 0 });
        Some(self.points.len() as u32 - 1)
    }

    pub(super) fn add(&mut self, ring: Arc<Ring>) {
        let hits = vec![0; MAX_POINTS];
        self.threads.push(Thread { ring, nodes: HashMap::new(), lost: 0, hits });
    }

    /// Takes in what the threads have written. Returns how many scopes were lost since the last time.
    fn collect(&mut self) -> u64 {
        let Collector { points, threads, stacks } = self;
        let mut lost = 0;
        threads.retain_mut(|thread| {
            // Asked first: what it wrote before it ended is then seen below.
            let is_over = thread.ring.is_over.load(Ordering::Acquire);
            let nodes = &mut thread.nodes;
            thread.ring.take(|event| match event {
                Event::Node { node, point, parent } => {
                    let mut stack = nodes.get(&parent).cloned().unwrap_or_default();
                    stack.push(point);
                    nodes.insert(node, stack);
                }
                Event::Scope { node, point, nanos, own_nanos } => {
                    if let Some(stack) = nodes.get(&node) {
                        *stacks.entry(stack.clone()).or_default() += own_nanos;
                    }
                    let point = &mut points[point as usize];
                    point.times.saturating_record(nanos.max(1));
                    point.total_nanos = point.total_nanos.saturating_add(nanos);
                }
            });
            let now = thread.ring.lost.load(Ordering::Relaxed);
            lost += now - thread.lost;
            thread.lost = now;
            for (number, point) in points.iter_mut().enumerate() {
                let now = thread.ring.hits[number].load(Ordering::Relaxed);
                point.hits += now - thread.hits[number];
                thread.hits[number] = now;
            }
            !is_over
        });
        lost
    }

    pub(super) fn report(&mut self) -> Report {
        let lost = self.collect();
        let points = self.points.iter().map(|point| {
            let at = |quantile: f64| point.times.value_at_quantile(quantile);
            let is_timed = !point.times.is_empty();
            PointReport {
                name: point.name,
                hits: point.hits,
                timed: point.times.len(),
                min_nanos: if is_timed { point.times.min() } else { 0 },
                median_nanos: at(0.5),
                p99_nanos: at(0.99),
                max_nanos: point.times.max(),
                total_nanos: point.total_nanos,
            }
        });
        let name = |number: &u32| self.points[*number as usize].name;
        let stacks = self
            .stacks
            .iter()
            .map(|(stack, nanos)| (stack.iter().map(name).collect::<Vec<_>>(), *nanos));
        let mut points: Vec<PointReport> = points.collect();
        points.sort_by_key(|point| std::cmp::Reverse((point.total_nanos, point.hits)));
        Report { points, lost, stacks: stacks.collect() }
    }

    pub(super) fn reset(&mut self) {
        self.collect();
        self.stacks.clear();
        for point in &mut self.points {
            (point.hits, point.total_nanos) = (0, 0);
            point.times.reset();
        }
    }

    pub(super) fn hits(&mut self, name: &str) -> Option<u64> {
        self.collect();
        let point = self.points.iter().find(|point| point.name == name)?;
        Some(point.hits + point.times.len())
    }
}
