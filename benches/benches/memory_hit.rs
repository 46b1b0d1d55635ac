//! What does a branch on a value cost when the value is in the instruction, in the cache, in memory?

use std::hint::black_box;

use criterion::Criterion;
use immediate_benches::memory_hit::{CONTENDERS, table};

fn main() {
    let table = table();
    let mut criterion = Criterion::default().configure_from_args();
    for (kind, is_fenced) in [("fenced", true), ("overlapping", false)] {
        let mut group = criterion.benchmark_group(format!("memory hit, {kind}"));
        group.sample_size(20);
        for contender in CONTENDERS {
            let run = if is_fenced { contender.fenced } else { contender.free };
            group.bench_function(contender.key, |bencher| {
                bencher.iter_custom(|rounds| {
                    let start = std::time::Instant::now();
                    run(black_box(&table), rounds);
                    start.elapsed()
                });
            });
        }
        group.finish();
    }
    criterion.final_summary();
}
