//! What do two markers add to a system call when something else has used the caches?

use std::time::{Duration, Instant};

use criterion::Criterion;
use immediate_benches::markers::{CONTENDERS, PRESSURES, Pressures};

fn main() {
    let Some(pressures) = Pressures::new() else {
        println!("no code can be made here that presses on the instruction cache");
        return;
    };
    let mut criterion = Criterion::default().configure_from_args();
    for pressure in PRESSURES {
        let mut group = criterion.benchmark_group(format!("markers, {pressure}"));
        group.sample_size(20).warm_up_time(Duration::from_millis(300));
        group.measurement_time(Duration::from_secs(1));
        for (name, call) in CONTENDERS {
            group.bench_function(name, |bencher| {
                bencher.iter_custom(|calls| {
                    (0..calls)
                        .map(|_| {
                            pressures.press(pressure);
                            let start = Instant::now();
                            call();
                            start.elapsed()
                        })
                        .sum()
                });
            });
        }
        group.finish();
    }
    criterion.final_summary();
}
