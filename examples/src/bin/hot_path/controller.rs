//! Flips the switches while the text is scanned, and says in which state they are.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize, fence};
use std::thread::sleep;
use std::time::{Duration, Instant};

use immediate::{Error, Status};

use crate::switches::{Change, State, Switches, circle};

/// Between two updates.
const PAUSE: Duration = Duration::from_micros(1500);
/// Between two looks whether an update has been seen.
const LOOK: Duration = Duration::from_micros(50);
/// An update that no thread has seen by then will not be seen.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the controller and the scanning threads tell each other.
///
/// `announced` is twice the number of the step whose state the switches are in, and odd while they
/// change: a sequence lock, of which a scanning thread learns whether the switches stood still
/// while it scanned a piece.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    announced: AtomicUsize,
    /// The latest step of which a thread has scanned a whole piece and found all counts right.
    seen: AtomicUsize,
    pub(crate) stop: AtomicBool,
}

impl Talk {
    pub(crate) fn at(step: u64) -> Talk {
        Talk { announced: AtomicUsize::new(step as usize * 2), ..Talk::default() }
    }

    /// Whoever does not see this store sees none of the changes that follow: partner of the fence in
    /// `after`.
    fn begin_change(&self) {
        self.announced.fetch_add(1, Relaxed);
        fence(Release);
    }

    /// Whoever sees this store sees all of the changes: partner of the load in `before`.
    fn end_change(&self) {
        self.announced.fetch_add(1, Release);
    }

    /// A scanning thread calls this before it scans a piece.
    pub(crate) fn before(&self) -> u64 {
        self.announced.load(Acquire) as u64
    }

    /// The step in whose state the switches were since `before`; `None` if they changed.
    pub(crate) fn after(&self, before: u64) -> Option<u64> {
        fence(Acquire);
        let is_steady = before.is_multiple_of(2) && self.announced.load(Relaxed) as u64 == before;
        is_steady.then_some(before / 2)
    }

    /// A scanning thread has found the effect of this step.
    pub(crate) fn tell_seen(&self, step: u64) {
        let step = step as usize;
        if self.seen.load(Relaxed) < step {
            self.seen.fetch_max(step, Relaxed);
        }
    }
}

/// The controller of one kind of switches; goes on from turn to turn.
#[derive(Debug)]
pub(crate) struct Controller {
    apply: fn(&[Change]) -> Result<(), Error>,
    has_sites: bool,
    pub(crate) circle: Vec<State>,
    /// The step whose state the switches are in.
    pub(crate) step: u64,
    /// How long each update took.
    pub(crate) updates: Vec<Duration>,
    /// For how long updates were made.
    pub(crate) time: Duration,
    /// How many sites each step of the circle changes, as far as known.
    sites: Vec<Option<usize>>,
    /// How many sites were changed altogether.
    pub(crate) patched: usize,
    /// How updates are carried out while threads scan.
    pub(crate) status: Option<Status>,
}

impl Controller {
    pub(crate) fn new<S: Switches>() -> Controller {
        let circle = circle();
        Controller {
            apply: S::apply,
            has_sites: S::HAS_SITES,
            sites: vec![None; circle.len()],
            circle,
            step: 0,
            updates: Vec::new(),
            time: Duration::ZERO,
            patched: 0,
            status: None,
        }
    }

    /// The state that the switches are to be in when a turn begins.
    pub(crate) fn state(&self) -> &State {
        &self.circle[self.place(self.step)]
    }

    fn place(&self, step: u64) -> usize {
        (step % self.circle.len() as u64) as usize
    }

    /// Flips until `end`, but at least once through the circle; waits for each update until it is
    /// seen.
    ///
    /// # Errors
    ///
    /// One line: an update failed, or was not seen.
    pub(crate) fn flip(&mut self, talk: &Talk, end: Instant) -> Result<(), String> {
        let begin = Instant::now();
        let last = self.step + self.circle.len() as u64;
        loop {
            sleep(PAUSE);
            self.wait_until_seen(talk)?;
            if talk.stop.load(Relaxed) || Instant::now() >= end && self.step >= last {
                break;
            }
            self.update(talk)?;
        }
        self.time += begin.elapsed();
        Ok(())
    }

    fn update(&mut self, talk: &Talk) -> Result<(), String> {
        let place = self.place(self.step + 1);
        let changes = self.circle[place].changes_from(self.state());
        talk.begin_change();
        let begin = Instant::now();
        let result = (self.apply)(&changes);
        let took = begin.elapsed();
        result.map_err(|error| error.to_string())?;
        talk.end_change();
        self.step += 1;
        self.updates.push(took);
        if self.has_sites {
            self.patched += self.sites_at(place);
        }
        Ok(())
    }

    /// Asks once for each step of the circle, because asking costs as much as an update.
    fn sites_at(&mut self, place: usize) -> usize {
        if let Some(sites) = self.sites[place] {
            return sites;
        }
        let status = immediate::status();
        let sites = status.last.as_ref().map_or(0, |last| last.sites);
        self.status = Some(status);
        self.sites[place] = Some(sites);
        sites
    }

    fn wait_until_seen(&self, talk: &Talk) -> Result<(), String> {
        let begin = Instant::now();
        while (talk.seen.load(Relaxed) as u64) < self.step && !talk.stop.load(Relaxed) {
            if begin.elapsed() > PATIENCE {
                let state = self.state();
                return Err(format!(
                    "verification failed: no thread has seen {state:?} within {PATIENCE:?}"
                ));
            }
            sleep(LOOK);
        }
        Ok(())
    }
}
