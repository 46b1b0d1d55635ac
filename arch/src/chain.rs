//! The trap handlers of several runtimes in one process, and which of them passes traps on to which.
//!
//! A process has more than one runtime only where copies of this library do not go together. Each
//! installs its handler once and passes on what is not its own to whoever had the signal before. So
//! a later one in front of ours is no reason to give up traps, if it is known to pass them on. That a
//! handler is never put in front twice is what keeps the chain from being a ring.
//!
//! # Invariants
//!
//! * `Q1` A [`Chain`] lives as long as the process: its library is never unmapped. Its layout is the
//!   same in all versions.

#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// How many runtimes may know each other.
const OTHERS: usize = 8;

/// What a runtime tells of its handler.
#[repr(C)]
#[derive(Debug)]
pub struct Chain {
    /// The address of its handler; 0 before it is installed.
    handler: AtomicUsize,
    /// The handler that it passes on to.
    previous: AtomicUsize,
    others: [AtomicPtr<Chain>; OTHERS],
}

/// This runtime's.
pub static CHAIN: Chain = Chain::new();

impl Chain {
    const fn new() -> Self {
        Chain {
            handler: AtomicUsize::new(0),
            previous: AtomicUsize::new(0),
            others: [const { AtomicPtr::new(ptr::null_mut()) }; OTHERS],
        }
    }

    /// Makes two runtimes known to each other. Where there are too many, they use other protocols
    /// than traps.
    pub fn meet(&'static self, other: &'static Chain) {
        self.add(other);
        other.add(self);
    }

    fn add(&self, other: &'static Chain) {
        let other = ptr::from_ref(other).cast_mut();
        for place in &self.others {
            let found =
                place.compare_exchange(ptr::null_mut(), other, Ordering::AcqRel, Ordering::Acquire);
            match found {
                Ok(_) => return,
                Err(known) if known == other => return,
                Err(_) => {}
            }
        }
    }

    /// Says that `handler` is installed in front of `previous`.
    pub(crate) fn begins(&self, handler: usize, previous: usize) {
        self.previous.store(previous, Ordering::Relaxed);
        self.handler.store(handler, Ordering::Release);
    }

    /// Whether a trap that `handler` gets and that is ours comes to our handler.
    pub(crate) fn is_reached_from(&self, mut handler: usize) -> bool {
        let own = self.handler.load(Ordering::Relaxed);
        // Each of the others is passed at most once.
        for _ in 0..=OTHERS {
            if handler == own {
                return true;
            }
            let next = self.others().find(|one| one.handler.load(Ordering::Acquire) == handler);
            let Some(next) = next else { return false };
            handler = next.previous.load(Ordering::Relaxed);
        }
        false
    }

    fn others(&self) -> impl Iterator<Item = &'static Chain> {
        // SAFETY: Q1.
        self.others.iter().filter_map(|other| unsafe { other.load(Ordering::Acquire).as_ref() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_who_passes_on_and_nobody_else() {
        static CHAINS: [Chain; 3] = [const { Chain::new() }; 3];
        let [one, two, three] = &CHAINS;
        one.begins(100, 1);
        assert!(one.is_reached_from(100) && !one.is_reached_from(200));
        two.begins(200, 100);
        assert!(!one.is_reached_from(200), "not known yet");
        one.meet(two);
        one.meet(two);
        assert!(one.is_reached_from(200) && two.is_reached_from(200));
        assert!(!two.is_reached_from(100), "the older one does not pass on to the later one");
        one.meet(three);
        three.begins(300, 200);
        assert!(one.is_reached_from(300));
        // A foreign handler in front of all, and two that pass on to each other.
        assert!(!one.is_reached_from(400));
        two.begins(200, 300);
        assert!(!one.is_reached_from(300));
    }
}
