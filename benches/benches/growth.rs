//! Do 1,000,000 other sites in the program change what a set costs? Target: by no more than 10 %.
//!
//! Two programs set the same one site, alternately: `growth_few` has one other site,
//! `growth_million` has a million, of another variable in the same table and the same text.

use std::path::Path;

use criterion::Criterion;
use immediate_benches::alternate::{Effort, Target, alternate, print_ratio};
use immediate_benches::one_site::{ALONE, RUNNING, SET};
use immediate_benches::worker::Worker;

const PROGRAMS: [(&str, &str); 2] = [
    ("one other site", env!("CARGO_BIN_EXE_growth_few")),
    ("1,000,000 other sites", env!("CARGO_BIN_EXE_growth_million")),
];

/// Sets in one sample.
const SETS: u64 = 20;

fn main() {
    let effort = Effort::asked();
    let mut criterion = Criterion::default().configure_from_args();
    for (situation, role) in [("single-threaded", ALONE), ("with a running thread", RUNNING)] {
        let mut workers = PROGRAMS.map(|(_, program)| {
            (effort != Effort::None).then(|| Worker::start(Path::new(program), role, &[]))
        });
        if let [Some(few), _] = &workers
            && few.greeting().starts_with("plain")
        {
            println!("{}", few.greeting());
            continue;
        }
        let mut group = criterion.benchmark_group(format!("set one site, {situation}"));
        group.sample_size(20);
        for (place, (name, _)) in PROGRAMS.iter().enumerate() {
            group.bench_function(*name, |bencher| {
                bencher.iter_custom(|sets| {
                    workers[place].as_mut().expect("started unless listing").time(SET, sets)
                });
            });
        }
        group.finish();
        let rounds = match effort {
            Effort::Full => 201,
            Effort::Try => 3,
            Effort::None => continue,
        };
        let [Some(few), Some(million)] = &mut workers else { continue };
        println!("{}\n{}", few.greeting(), million.greeting());
        let rounds = alternate(2, rounds, |contender| match contender {
            0 => few.time(SET, SETS),
            _ => million.time(SET, SETS),
        });
        println!("one set, {situation}, one other site: {} µs", rounds.microseconds(0, SETS));
        println!("one set, {situation}, 1,000,000 others: {} µs", rounds.microseconds(1, SETS));
        println!("{} disturbed times among them", few.gave_up() + million.gave_up());
        let what = format!("set of one site {situation}, 1,000,000 other sites / one");
        print_ratio(&what, rounds.ratio(1, 0), Some(Target::AtMost(1.1)));
    }
    criterion.final_summary();
}
