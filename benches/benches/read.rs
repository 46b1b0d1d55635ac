//! What does a disabled check in a loop cost? Target: a loop with a disabled `immediate_if!` takes
//! at most 1.02 times as long as the loop without.
//!
//! The loop hashes a text byte by byte (FNV-1a), as the hot loop of a program does its work: the
//! check has a few instructions for company, and no loop is faster for having been unrolled. The
//! same check as `immediate_read!`, as a relaxed load and by the crate `static-keys` run in the same
//! rounds.
//!
//! A second loop, which counts lines, is one that the compiler turns into vector instructions. It
//! does not do so around any check that can change at run time, an atomic load as little as a site,
//! so there each of them costs what the vectors save. It has no target and is shown for honesty.

#![allow(unsafe_code)]

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use immediate::{Immediate, immediate, immediate_if, immediate_read};
use immediate_benches::alternate::{Effort, Target, alternate, print_ratio};
use static_keys::{define_static_key_false, static_branch_unlikely};

#[immediate]
static OFF: Immediate<bool> = Immediate::new(false);
static ATOMIC: AtomicBool = AtomicBool::new(false);
define_static_key_false!(KEY);

#[cold]
#[inline(never)]
fn note(state: u64) {
    black_box(state);
}

/// Two loops, with `$check` in each.
macro_rules! loops {
    ($name:ident, $check:expr) => {
        mod $name {
            use super::*;

            #[inline(never)]
            pub(crate) fn hash(text: &[u8]) -> u64 {
                let mut hash = 0xcbf2_9ce4_8422_2325_u64;
                for byte in text {
                    hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
                    if $check {
                        note(hash);
                    }
                }
                hash
            }

            #[inline(never)]
            pub(crate) fn lines(text: &[u8]) -> u64 {
                let mut lines = 0;
                for byte in text {
                    lines += u64::from(*byte == b'\n');
                    if $check {
                        note(lines);
                    }
                }
                lines
            }
        }
    };
}

loops!(without, false);
loops!(branch, immediate_if!(OFF));
loops!(value, immediate_read!(OFF));
loops!(atomic, ATOMIC.load(Ordering::Relaxed));
loops!(key, static_branch_unlikely!(KEY));

type Loop = fn(&[u8]) -> u64;

const HASH: [(&str, Loop); 5] = [
    ("without", without::hash),
    ("disabled immediate_if", branch::hash),
    ("immediate_read", value::hash),
    ("relaxed AtomicBool", atomic::hash),
    ("disabled static-keys branch", key::hash),
];
const LINES: [(&str, Loop); 5] = [
    ("without", without::lines),
    ("disabled immediate_if", branch::lines),
    ("immediate_read", value::lines),
    ("relaxed AtomicBool", atomic::lines),
    ("disabled static-keys branch", key::lines),
];

/// Text that stays in the first-level cache.
fn text() -> Vec<u8> {
    let line = b"GET /index.html 200 5120 12us \"agent\"\n";
    line.iter().copied().cycle().take(16 * 1024).collect()
}

fn time(run: Loop, text: &[u8], passes: u32) -> Duration {
    let start = Instant::now();
    for _ in 0..passes {
        black_box(run(black_box(text)));
    }
    start.elapsed()
}

fn main() {
    static_keys::global_init();
    // Somebody could switch it: a flag that nobody writes is a constant to the compiler, and the
    // loop with it would be the loop without (seen).
    black_box(&ATOMIC).store(false, Ordering::Relaxed);
    let effort = Effort::asked();
    let text = text();
    let mut criterion = Criterion::default().configure_from_args();
    for (what, loops, passes, target) in [
        ("hash", HASH, 10, Some(Target::AtMost(1.02))),
        ("count lines, vectorised", LINES, 20, None),
    ] {
        let expected = loops[0].1(&text);
        assert!(loops.iter().all(|(_, run)| run(&text) == expected), "all loops do the same");
        let mut group = criterion.benchmark_group(format!("loop: {what}"));
        group.throughput(Throughput::Bytes(text.len() as u64)).sample_size(50);
        for (name, run) in loops {
            group.bench_function(name, |bencher| bencher.iter(|| run(black_box(&text))));
        }
        group.finish();
        let rounds = match effort {
            Effort::Full => 501,
            Effort::Try => 3,
            Effort::None => continue,
        };
        let rounds = alternate(loops.len(), rounds, |place| time(loops[place].1, &text, passes));
        for (place, (name, _)) in loops.iter().enumerate().skip(1) {
            let target = target.filter(|_| place == 1);
            print_ratio(
                &format!("loop ({what}) with {name} / without"),
                rounds.ratio(place, 0),
                target,
            );
        }
    }
    criterion.final_summary();
}
