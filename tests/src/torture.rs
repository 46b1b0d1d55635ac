//! A bounded run of many readers against one who sets.

use crate::counter::AtomicU64;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Where a run ends, whichever comes first.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// So many updates.
    pub updates: u64,
    /// So many seconds; the environment variable `IMMEDIATE_TORTURE_SECONDS` replaces it.
    pub seconds: u64,
}

impl Bound {
    /// `updates` or `seconds`.
    #[must_use]
    pub fn new(updates: u64, seconds: u64) -> Self {
        let asked = std::env::var("IMMEDIATE_TORTURE_SECONDS").ok();
        let seconds = asked.and_then(|text| text.parse().ok()).unwrap_or(seconds);
        Bound { updates, seconds }
    }

    /// The time at which a run that starts now ends.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_secs(self.seconds)
    }
}

/// How much a run did.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Updates.
    pub updates: u64,
    /// Rounds of all readers together.
    pub rounds: u64,
}

/// The window in which a generation that is read must lie: what has been set before the read
/// began, and what had begun to be set when it ended.
#[derive(Debug, Default)]
pub struct Window {
    settled: AtomicU64,
    begun: AtomicU64,
}

impl Window {
    /// Nothing has been set yet: generation 0.
    #[must_use]
    pub const fn new() -> Self {
        Window { settled: AtomicU64::new(0), begun: AtomicU64::new(0) }
    }

    /// Carries out the set of a generation.
    pub fn set(&self, generation: u64, set: impl FnOnce()) {
        self.begun.store(generation, SeqCst);
        set();
        self.settled.store(generation, SeqCst);
    }

    /// Carries out the set of a generation, which may fail: then it has begun, and can be tried again.
    ///
    /// # Errors
    ///
    /// What `set` says.
    pub fn try_set<E>(
        &self,
        generation: u64,
        set: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        self.begun.store(generation, SeqCst);
        set()?;
        self.settled.store(generation, SeqCst);
        Ok(())
    }

    /// The last generation whose set has returned.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.settled.load(SeqCst)
    }

    /// The last generation whose set has begun.
    #[must_use]
    pub fn begun(&self) -> u64 {
        self.begun.load(SeqCst)
    }

    /// Reads between two looks at the window; the bounds of what may have been read come with it.
    pub fn read<T>(&self, read: impl FnOnce() -> T) -> (T, u64, u64) {
        let from = self.settled();
        let value = read();
        (value, from, self.begun())
    }
}

/// So many readers are not yet a crowd.
const CROWD: usize = 8;

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Runs `readers` threads, each of which calls what `reader` makes for it over and over, while this
/// thread calls `update` with 1, 2, 3 and so on until the bound. Every reader runs at least once
/// before the first update and once after the last. Prints how much was done.
///
/// Readers are nice to the thread that sets, and a crowd of them pauses now and then: else, with
/// many of them on few processors, it would wait most of the time.
///
/// # Panics
///
/// If a reader or an update does; the others are stopped first.
pub fn run<R: FnMut()>(
    name: &str,
    bound: Bound,
    readers: usize,
    reader: impl Fn(usize) -> R + Sync,
    mut update: impl FnMut(u64),
) -> Done {
    let stop = AtomicBool::new(false);
    let ready = AtomicU64::new(0);
    let rounds = AtomicU64::new(0);
    let begun = Instant::now();
    let updates = std::thread::scope(|scope| {
        let _stop = Stop(&stop);
        for index in 0..readers {
            let (stop, ready, rounds, reader) = (&stop, &ready, &rounds, &reader);
            scope.spawn(move || {
                // A reader that panics ends the run.
                let stop_all = Stop(stop);
                be_nice();
                let mut read = reader(index);
                read();
                ready.fetch_add(1, SeqCst);
                let mut own = 2;
                while !stop.load(SeqCst) {
                    read();
                    own += 1;
                    if readers > CROWD && own % 16 == 0 {
                        std::thread::sleep(Duration::from_micros(500));
                    }
                }
                read();
                rounds.fetch_add(own, SeqCst);
                drop(stop_all);
            });
        }
        while ready.load(SeqCst) < readers as u64 && !stop.load(SeqCst) {
            std::thread::yield_now();
        }
        let deadline = bound.deadline();
        let mut updates = 0;
        while updates < bound.updates && Instant::now() < deadline && !stop.load(SeqCst) {
            update(updates + 1);
            updates += 1;
        }
        updates
    });
    let done = Done { updates, rounds: rounds.load(SeqCst) };
    println!(
        "{name}: {} updates, {} rounds of {readers} readers in {:.1} s",
        done.updates,
        done.rounds,
        begun.elapsed().as_secs_f64()
    );
    assert!(done.updates > 0, "nothing was set");
    done
}

/// Lets others go first.
#[allow(unsafe_code)]
pub fn be_nice() {
    // SAFETY: changes how this thread is scheduled (on Linux a number of 0 is the calling thread);
    // a failure changes nothing.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
}

/// Random enough to vary an order: the generator of Knuth's MMIX.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A sequence of its own for each seed.
    #[must_use]
    pub fn new(seed: usize) -> Self {
        Random((seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % limit
    }
}
