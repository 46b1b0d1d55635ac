//! What does setting one site cost while another thread runs through it? Target: at most 1.3 times
//! the cost of its own system calls, measured in the same run, alternating.
//!
//! Its own system calls are, for the protocol `int3`, two changes of the protection of text and
//! three barriers; for `quadword`, two and one. They are made on the pages that a set is seen to
//! open, with stores to the site's page between, while the same thread runs. Before a set uses traps
//! it looks whether every thread can take one; the second ratio counts those calls as well.

use criterion::Criterion;
use immediate_benches::alternate::{Effort, Target, alternate, print_ratio};
use immediate_benches::one_site::{self, CALLS, CALLS_AND_LOOKS, RUNNING, SET};
use immediate_benches::worker::{self, Worker};

const CONTENDERS: [(&str, &str); 3] = [
    ("set", SET),
    ("the system calls of its protocol", CALLS),
    ("all its system calls", CALLS_AND_LOOKS),
];

/// Sets in one sample.
const SETS: u64 = 20;

fn main() -> std::io::Result<()> {
    if let Some(role) = worker::role() {
        return one_site::serve(&role);
    }
    let effort = Effort::asked();
    let mut criterion = Criterion::default().configure_from_args();
    for protocol in ["int3", "quadword"] {
        let mut worker = (effort != Effort::None).then(|| {
            Worker::again(
                RUNNING,
                &[("IMMEDIATE_PROTOCOL", protocol), ("IMMEDIATE_WRITER", "mprotect")],
            )
        });
        if worker.as_ref().is_some_and(|worker| worker.greeting().starts_with("plain")) {
            println!("{}", worker.as_ref().map_or("", |worker| worker.greeting()));
            continue;
        }
        let mut group =
            criterion.benchmark_group(format!("one site, a running thread, {protocol}"));
        group.sample_size(20);
        for (name, contender) in CONTENDERS {
            group.bench_function(name, |bencher| {
                bencher.iter_custom(|iterations| {
                    worker.as_mut().expect("started unless listing").time(contender, iterations)
                });
            });
        }
        group.finish();
        let rounds = match effort {
            Effort::Full => 201,
            Effort::Try => 3,
            Effort::None => continue,
        };
        let Some(worker) = &mut worker else { continue };
        println!("{}", worker.greeting());
        let rounds = alternate(3, rounds, |place| worker.time(CONTENDERS[place].1, SETS));
        for (place, (name, _)) in CONTENDERS.iter().enumerate() {
            println!("{protocol}, {name}: {} µs", rounds.microseconds(place, SETS));
        }
        println!("{protocol}: {} disturbed times among them", worker.gave_up());
        for (place, (name, _)) in CONTENDERS.iter().enumerate().skip(1) {
            let what = format!("set of one site with a running thread / {name} ({protocol})");
            print_ratio(&what, rounds.ratio(0, place), Some(Target::AtMost(1.3)));
        }
    }
    criterion.final_summary();
    Ok(())
}
