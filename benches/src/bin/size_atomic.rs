//! 1,000 relaxed loads of one `AtomicBool`, with a branch each.

#![allow(unsafe_code)]

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

static SWITCH: AtomicBool = AtomicBool::new(false);

immediate_benches::thousand_checks!(
    |number, other| {
        number ^= other;
        if SWITCH.load(Ordering::Relaxed) {
            return number;
        }
    },
    black_box(&SWITCH).store(false, Ordering::Relaxed)
);
