//! What 100,000 sites cost when the program starts.

use std::process::Command;

use crate::Run;

pub(crate) fn run(run: &mut Run<'_>, seconds: f64) {
    let program = run.programs.path("register");
    run.repeat(seconds, |figures, _| {
        let output = Command::new(&program).output().expect("the program is built");
        let text = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<f64> =
            text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [time, memory, more] = numbers[..] else { panic!("{output:?} has no three numbers") };
        figures.add("register.sites_100000_ns_per_site", time);
        figures.add("register.memory_bytes_per_site", memory);
        figures.add("register.memory_bytes_per_site_once_set", more);
    });
}
