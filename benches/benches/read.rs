//! What does a disabled check in a loop cost? Target: a loop with a disabled `immediate_if!` takes
//! at most 1.02 times as long as the loop without.
//!
//! The loops are those of `immediate_benches::warm`. The one that the compiler turns into vector
//! instructions has no target and is shown for honesty.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use immediate_benches::alternate::{Effort, Target, alternate, print_ratio};
use immediate_benches::warm::{self, Loop};

fn time(contender: &Loop, text: &[u8], passes: u32) -> Duration {
    let start = Instant::now();
    for _ in 0..passes {
        black_box(contender.run(black_box(text)));
    }
    start.elapsed()
}

fn main() {
    warm::prepare();
    let effort = Effort::asked();
    let text = warm::text();
    let mut criterion = Criterion::default().configure_from_args();
    for (what, loops, passes, target) in [
        ("hash", warm::HASH, 10, Some(Target::AtMost(1.02))),
        ("count lines, vectorised", warm::LINES, 20, None),
    ] {
        let expected = loops[0].run(&text);
        assert!(loops.iter().all(|one| one.run(&text) == expected), "all loops do the same");
        let mut group = criterion.benchmark_group(format!("loop: {what}"));
        group.throughput(Throughput::Bytes(text.len() as u64)).sample_size(50);
        for contender in loops {
            group.bench_function(contender.what, |bencher| {
                bencher.iter(|| contender.run(black_box(&text)));
            });
        }
        group.finish();
        let rounds = match effort {
            Effort::Full => 501,
            Effort::Try => 3,
            Effort::None => continue,
        };
        let rounds = alternate(loops.len(), rounds, |place| time(&loops[place], &text, passes));
        for (place, contender) in loops.iter().enumerate().skip(1) {
            let target = target.filter(|_| contender.key == "immediate");
            print_ratio(
                &format!("loop ({what}) with {} / without", contender.what),
                rounds.ratio(place, 0),
                target,
            );
        }
    }
    criterion.final_summary();
}
