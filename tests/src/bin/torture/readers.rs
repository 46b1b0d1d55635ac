//! Threads that read every site over and over and check what they read.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use immediate_tests::alternate_stack::AlternateStack;
use immediate_tests::scatter::scatter64;
use immediate_tests::torture::{Random, be_nice};

use crate::disturb;
use crate::options::Wrong;
use crate::sites::{SITES, Site, TOGETHER, Tells};
use crate::{READS, is_over};

/// Rounds in which a reader was trapped or stopped.
pub(crate) static CAUGHT: AtomicU64 = AtomicU64::new(0);
/// The latest generation of the batches that any reader has seen.
static SEEN: AtomicU64 = AtomicU64::new(0);

/// Reads in one round.
const ROUND: usize = 16;
/// The generation from which on a reader sees what it is told to see wrongly.
const WRONG_FROM: u64 = 50;

/// Reads until the run is over.
pub(crate) fn run(index: usize, one_instant: bool, wrong: Option<Wrong>) {
    be_nice();
    disturb::be_struck();
    let mut stack = AlternateStack::install();
    let mut mark = None;
    let mut random = Random::new(index + 1);
    let mut seen = vec![0; SITES.len()];
    let (mut rounds, mut caught) = (0_u64, 0);
    while !is_over() {
        for _ in 0..ROUND {
            let place = random.below(SITES.len());
            let site = &SITES[place];
            match wrong {
                Some(wrong) => see_wrongly(site, wrong, &mut seen[place]),
                None if one_instant && std::ptr::eq(site.window, &raw const TOGETHER) => {
                    compare_with_others(site, &mut seen[place]);
                }
                None => site.check(&mut seen[place]),
            }
        }
        rounds += 1;
        // The handlers of the library leave no trace but their frame on this stack.
        match mark {
            Some(mark) => caught += u64::from(stack.take(mark)),
            None if rounds.is_multiple_of(64) => mark = stack.mark(),
            None => {}
        }
        if rounds.is_multiple_of(512) {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    CAUGHT.fetch_add(caught, SeqCst);
    READS.fetch_add(rounds * ROUND as u64, SeqCst);
}

/// Where a batch is one instant, nobody reads older than what anybody had seen, at any site.
fn compare_with_others(site: &Site, own: &mut u64) {
    let told = SEEN.load(SeqCst);
    let (bits, from, to) = TOGETHER.read(site.read);
    let mut seen = told.max(*own);
    site.judge(bits, (from.max(told), to), &mut seen);
    if let Tells::Itself(_) = site.tells {
        *own = seen;
        SEEN.fetch_max(seen, SeqCst);
    }
}

/// As [`Site::check`], with another value than the one that was read.
fn see_wrongly(site: &Site, wrong: Wrong, seen: &mut u64) {
    let (bits, from, to) = site.window.read(site.read);
    let tells_itself = matches!(site.tells, Tells::Itself(_));
    let bits = match wrong {
        Wrong::Mixture if tells_itself && from > WRONG_FROM => bits ^ 0xff00,
        Wrong::Older if site.name == "u64" && from > WRONG_FROM => scatter64(1),
        Wrong::Branch if site.name == "branch" && from > WRONG_FROM && from == to => bits ^ 1,
        _ => bits,
    };
    site.judge(bits, (from, to), seen);
}
