//! Threads that set: batches, single variables, and under the lock.
//!
//! A set that is refused must have changed nothing: its thread looks at every site of what it sets,
//! then tries the same generation again.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use immediate::Error;
use immediate_tests::scatter::{gather64, scatter32, scatter64};
use immediate_tests::torture::Window;

use crate::sites::{self, ALONE, COUNT, COUNTED, SITES, TOGETHER, alone, together};
use crate::violation::{self, Violation};
use crate::{disturb, is_over};

/// Sets and batches that succeeded.
pub(crate) static UPDATES: AtomicU64 = AtomicU64::new(0);
/// Sets and batches that were refused.
pub(crate) static REFUSED: AtomicU64 = AtomicU64::new(0);
/// Why the last of them was.
pub(crate) static REFUSAL: Mutex<String> = Mutex::new(String::new());

/// Carries out the set of a generation; gives the next one to try.
fn attempt(
    window: &'static Window,
    generation: u64,
    set: impl FnOnce() -> Result<(), Error>,
) -> u64 {
    match window.try_set(generation, set) {
        Ok(()) => {
            UPDATES.fetch_add(1, SeqCst);
            look_at(window, generation);
            generation + 1
        }
        Err(error @ Error::Refused(_)) => {
            REFUSED.fetch_add(1, SeqCst);
            *REFUSAL.lock().unwrap_or_else(PoisonError::into_inner) = error.to_string();
            look_at(window, generation - 1);
            generation
        }
        Err(error) => {
            eprintln!("torture: {error}");
            violation::exit(&Violation::of_program("a set failed for no good reason"))
        }
    }
}

/// Every site that follows `window` gives this generation and no other.
fn look_at(window: &'static Window, generation: u64) {
    for site in SITES.iter().filter(|site| std::ptr::eq(site.window, window)) {
        site.judge((site.read)(), (generation, generation), &mut 0);
    }
}

fn pause(generation: u64) {
    // Nobody else would get the lock, or the processor.
    std::thread::sleep(Duration::from_micros(if generation.is_multiple_of(64) { 500 } else { 20 }));
}

/// Sets ten variables in one batch, over and over.
pub(crate) fn batches() {
    disturb::be_struck();
    let mut generation = 1;
    while !is_over() {
        generation = attempt(&TOGETHER, generation, || sites::batch(generation).apply());
        pause(generation);
    }
}

/// Sets three variables in turn.
pub(crate) fn singles() {
    disturb::be_struck();
    let mut generations = [1; 3];
    while !is_over() {
        let [eight, four, odd] = generations;
        generations = [
            attempt(&ALONE[0], eight, || alone::EIGHT.set(scatter64(eight))),
            attempt(&ALONE[1], four, || alone::FOUR.set(scatter32(four))),
            attempt(&ALONE[2], odd, || alone::ODD.set(odd % 2 == 1)),
        ];
        pause(eight);
    }
}

/// Reads the last value and sets the next, with nobody between.
pub(crate) fn under_the_lock() {
    while !is_over() {
        let guard = immediate::lock();
        let Some(last) = gather64(COUNT.get()) else {
            violation::exit(&Violation::of_program("the listed count is a mixture"))
        };
        attempt(&COUNTED, last + 1, || guard.set(&COUNT, scatter64(last + 1)));
        drop(guard);
        pause(last);
    }
}

/// When nobody sets any more, every site and every listed value is of the last set that succeeded.
pub(crate) fn look_at_what_is_listed() {
    for window in [&TOGETHER, &ALONE[0], &ALONE[1], &ALONE[2], &COUNTED] {
        look_at(window, window.settled());
    }
    let listed = [
        (together::EIGHT.get(), scatter64(TOGETHER.settled())),
        (together::FLOAT.get().to_bits(), scatter64(TOGETHER.settled())),
        (together::FOUR.get().into(), scatter32(TOGETHER.settled()).into()),
        (alone::EIGHT.get(), scatter64(ALONE[0].settled())),
        (COUNT.get(), scatter64(COUNTED.settled())),
    ];
    if listed.iter().any(|(found, expected)| found != expected) {
        violation::exit(&Violation::of_program("a listed value is not that of the last set"));
    }
}
