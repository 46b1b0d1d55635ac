//! The report for people.

use std::fmt::Write as _;

use immediate_benches::cycles::UNIT;
use immediate_benches::markers;
use immediate_benches::warm::HASH;

use crate::effort::Effort;
use crate::figures::Figures;
use crate::machine::Machine;
use crate::storm::{PROTOCOLS, RATES};
use crate::targets::{Target, round};
use crate::token;
use crate::update::{OTHERS, SITES, THREADS, WAYS};

/// Median, quartiles and the number of runs.
fn cell(figures: &Figures, path: &str) -> String {
    let middle = figures.middle(path);
    let [median, low, high] = [middle.median, middle.low, middle.high].map(round);
    format!("{median} ({low} to {high}, {})", middle.count)
}

/// The same beside a baseline: what it is more, and how many times as much.
fn beside(figures: &Figures, path: &str, base: &str) -> String {
    let more = figures.median(path) - figures.median(base);
    let times = round(figures.ratio(path, base).median);
    format!("{} | {more:+.2} | {times}", cell(figures, path))
}

/// The whole text.
pub(crate) fn report(
    figures: &Figures,
    effort: Effort,
    seconds: f64,
    machine: &Machine,
    targets: &[Target],
    plots: &[(&'static str, &'static str)],
) -> String {
    let mut out = String::new();
    out += "# Measurements\n\n";
    let _ = writeln!(out, "{}\n", machine.sentence());
    let _ = writeln!(
        out,
        "`cargo run --release -p immediate-benches --bin report{}`, {seconds:.0} s. A figure is the \
         median; in parentheses its quartiles and the number of runs. A run of an update or a call \
         under pressure is itself a median of several. The contenders of a table took turns.\n",
        match effort {
            Effort::Full => "",
            Effort::Quick => " -- --quick",
            Effort::Smoke => " -- --smoke",
        }
    );
    out += "## Bounds\n\n| what | figure | bound | |\n| --- | --- | --- | --- |\n";
    targets.iter().for_each(|target| {
        let _ = writeln!(out, "{}", target.row());
    });
    out += &others_win(figures);
    memory_hit(&mut out, figures);
    under_pressure(&mut out, figures);
    token_and_clock(&mut out, figures);
    warm(&mut out, figures);
    update(&mut out, figures);
    disturbance(&mut out, figures);
    size(&mut out, figures);
    out += "\n## Plots\n\n";
    for (file, title) in plots {
        let _ = writeln!(out, "![{title}]({file}.svg)\n");
    }
    out
}

/// Where something else is the better choice in this run.
fn others_win(figures: &Figures) -> String {
    let mut out = String::from("\n## Where others win\n\n");
    let own = figures.median("read.warm.immediate_ns");
    let mut quicker = false;
    for contender in HASH.iter().filter(|contender| !contender.key.starts_with("base")) {
        let ratio =
            figures.ratio(&format!("read.warm.{}_ns", contender.key), "read.warm.immediate_ns");
        if ratio.high < 1.0 {
            quicker = true;
            let _ = writeln!(
                out,
                "* Reading, warm: {} takes {} times as long as `immediate_if!`.",
                contender.what,
                round(ratio.median)
            );
        }
    }
    if !quicker {
        let _ = writeln!(
            out,
            "* Reading, warm: none is quicker than `immediate_if!` ({own:.3} ns) in three quarters of \
             the rounds. A relaxed load takes {} times as long: with a warm cache that is all there is \
             to gain over an atomic.",
            round(figures.ratio("read.warm.atomic_ns", "read.warm.immediate_ns").median)
        );
    }
    let _ = writeln!(
        out,
        "* A loop that the compiler turns into vector instructions takes {} times as long with \
         `immediate_if!` in it, and {} times with an atomic: no check that can change belongs into \
         it.",
        round(figures.ratio("read.vector.immediate_ns", "read.vector.base_ns").median),
        round(figures.ratio("read.vector.atomic_ns", "read.vector.base_ns").median),
    );
    let _ = writeln!(
        out,
        "* Setting: an atomic store takes {} ns; the set of one site with one running thread {} µs by \
         `int3`. What is set thousands of times a second belongs into an atomic.",
        round(figures.median("update.atomic_store_us") * 1e3),
        round(figures.median("update.int3.mprotect.sites_1.threads_1_us")),
    );
    let instructions = figures
        .ratio("markers.immediate.instructions_cycles", "markers.global.instructions_cycles");
    let _ = writeln!(
        out,
        "* Under pressure on the instruction cache a call with immediates takes {} times as long as \
         one with globals{}.",
        round(instructions.median),
        if instructions.low > 1.0 { ": there immediates lose" } else { "" },
    );
    let (own, peer) = ("register.sites_100000_ns_per_site", "size.loaded_bytes_atomic");
    let _ = writeln!(
        out,
        "* Starting: a site takes {} ns to register and {} bytes in the file; an atomic load takes \
         {} bytes and nothing at the start.",
        round(figures.median(own)),
        round(figures.median("size.loaded_bytes_branch")),
        round(figures.median(peer)),
    );
    out
}

fn memory_hit(out: &mut String, figures: &Figures) {
    let _ = write!(
        out,
        "\n## Memory hit\n\nA branch on a value that lies in the instruction, in the first-level \
         cache, or in memory, at a pseudo-random place of a table larger than the last level. In \
         {UNIT}; with a fence in each round, and overlapping as the processor likes.\n\n\
         | | fenced | more than base | times base | overlapping | more | times |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n"
    );
    for name in ["base", "immediate", "immediate_value", "l1", "memory"] {
        let path = |table: &str, name: &str| format!("read.{table}.{name}_cycles");
        let _ = writeln!(
            out,
            "| {name} | {} | {} |",
            beside(figures, &path("cold", name), &path("cold", "base")),
            beside(figures, &path("cold_overlapped", name), &path("cold_overlapped", "base")),
        );
    }
    *out += "\nIn 2007, on a Pentium 4: +7.8 immediate, +12.1 cached, +559 in memory.\n";
}

fn under_pressure(out: &mut String, figures: &Figures) {
    let _ = write!(
        out,
        "\n## Markers under pressure\n\n`getppid` with two markers, in {UNIT}.\n\n\
         | between two calls | markers | {UNIT} | more than compiled out | times |\n\
         | --- | --- | --- | --- | --- |\n"
    );
    for pressure in markers::PRESSURES {
        for (name, _) in markers::CONTENDERS {
            let path = |name: &str| format!("markers.{name}.{pressure}_cycles");
            let _ = writeln!(
                out,
                "| {pressure} | {name} | {} |",
                beside(figures, &path(name), &path("compiled_out"))
            );
        }
    }
    *out += "\nIn 2007, on a Pentium 4: the two globals +742 cycles, 6.7 %.\n";
}

fn token_and_clock(out: &mut String, figures: &Figures) {
    *out += "\n## Token and clock\n\nA token between two processes over pipes on one processor, with \
             a clock call and two markers in each turn; and the clock calls alone.\n\n\
             | | ns | more than the first | times |\n| --- | --- | --- | --- |\n";
    for name in token::CONTENDERS {
        let path = format!("token.{name}_ns");
        let text = beside(figures, &path, "token.compiled_out_ns");
        let _ = writeln!(out, "| turn, markers {name} | {text} |");
    }
    for name in token::CLOCKS {
        let path = format!("clock.{name}_ns");
        let _ = writeln!(out, "| clock, {name} | {} |", beside(figures, &path, "clock.vdso_ns"));
    }
    *out += "\nThe clock's baseline is the vDSO; `vdso_again` is the same code once more.\n";
}

fn warm(out: &mut String, figures: &Figures) {
    *out += "\n## Read side, warm\n\nOne round of a loop that hashes a byte and does a check that is \
             off; then of a loop that counts lines, which the compiler turns into vector instructions \
             where there is no check.\n\n\
             | check | ns | more | times no check | vector loop, ns | more | times no check |\n\
             | --- | --- | --- | --- | --- | --- | --- |\n";
    for contender in HASH {
        let path = |table: &str, key: &str| format!("read.{table}.{key}_ns");
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            contender.what,
            beside(figures, &path("warm", contender.key), &path("warm", "base")),
            beside(figures, &path("vector", contender.key), &path("vector", "base")),
        );
    }
}

fn update(out: &mut String, figures: &Figures) {
    *out += "\n## Update side\n\nOne set, in µs, while so many threads run through the sites. The \
             floor is the protocol's bare system calls: two protection changes, its barriers or \
             signals. A set by `int3` also reads the signal masks of the threads in \
             `/proc/self/task`, so that none is killed by a trap: *all* is the floor with those \
             calls.\n";
    for threads in THREADS {
        let _ = write!(out, "\n### {threads} threads\n\n| protocol | writer |");
        SITES.iter().for_each(|sites| {
            let _ = write!(out, " {sites} sites |");
        });
        *out += " one site / floor | one site / all |\n| --- | --- |";
        *out += &" --- |".repeat(SITES.len() + 2);
        *out += "\n";
        for (protocol, _, writer, goes_with_threads) in WAYS {
            if threads > 0 && !goes_with_threads {
                continue;
            }
            let path = |sites: u64| {
                format!("update.{protocol}.{writer}.sites_{sites}.threads_{threads}_us")
            };
            let _ = write!(out, "| {protocol} | {writer} |");
            for sites in SITES {
                let is_there = figures.below("update").any(|key| path(sites).ends_with(key));
                let text = if is_there { cell(figures, &path(sites)) } else { "—".into() };
                let _ = write!(out, " {text} |");
            }
            let ratio = |floor: &str| {
                let floor = format!("update.{floor}.{protocol}.threads_{threads}_us");
                let is_there = figures.below("update").any(|key| floor.ends_with(key));
                if is_there && writer == "mprotect" {
                    round(figures.ratio(&path(1), &floor).median)
                } else {
                    "—".into()
                }
            };
            let _ = writeln!(out, " {} | {} |", ratio("floor"), ratio("floor_all"));
        }
        for protocol in ["single", "int3", "quadword", "stop_world"] {
            let floor = format!("floor.{protocol}.threads_{threads}_us");
            if figures.below("update").any(|key| key == floor) {
                let text = cell(figures, &format!("update.{floor}"));
                let _ = write!(out, "| floor of {protocol} | | {text} |");
                *out += &" |".repeat(SITES.len() + 1);
                *out += "\n";
            }
        }
        if threads == 0 {
            *out += "| static-keys | its own |";
            SITES.iter().for_each(|sites| {
                let _ = write!(
                    out,
                    " {} |",
                    cell(figures, &format!("update.static_keys.sites_{sites}_us"))
                );
            });
            *out += " | |\n";
        }
    }
    let ratio = |protocol: &str| {
        let path = |name: &str| format!("update.{name}.mprotect.sites_1.threads_0_us");
        round(figures.ratio(&path(protocol), &path("single")).median)
    };
    let _ = writeln!(
        out,
        "\nWith one thread the library takes `single`, which synchronises nothing. The full protocol \
         there would take {} times as long by `int3`, {} times by `quadword`. `procmem` makes three \
         system calls a site, so it has no run of 100,000 sites.\n\n\
         ### Growth\n\nOne set of one site with a running thread, and alone, by the number of other \
         sites in the program.\n\n\
         | others | with a thread, µs | times one other | alone, µs | times one other |\n\
         | --- | --- | --- | --- | --- |",
        ratio("int3"),
        ratio("quadword"),
    );
    for (others, _) in OTHERS {
        let path = |table: &str, others: u64| format!("{table}.others_{others}_us");
        let times =
            |table: &str| round(figures.ratio(&path(table, others), &path(table, 1)).median);
        let _ = writeln!(
            out,
            "| {others} | {} | {} | {} | {} |",
            cell(figures, &path("growth", others)),
            times("growth"),
            cell(figures, &path("growth_alone", others)),
            times("growth_alone"),
        );
    }
}

fn disturbance(out: &mut String, figures: &Figures) {
    *out += "\n## Disturbance\n\nReaders on every processor but one; operations of about a \
             microsecond that read the variable eight times. Throughput beside the run before, in \
             which the setter slept; latencies in ns; the line `0` is all of those quiet runs.\n\n\
             | protocol | sets a second, asked | done | throughput | p50 | p99 | p99.9 | longest |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for (protocol, _) in PROTOCOLS {
        for rate in std::iter::once(0).chain(RATES) {
            let path = |name: &str| format!("storm.{protocol}.hz_{rate}.{name}");
            let (done, ratio) = match rate {
                0 => ("0".into(), "1".into()),
                _ => (
                    round(figures.median(&path("sets_per_second"))),
                    cell(figures, &path("throughput_ratio")),
                ),
            };
            let [p50, p99, p999, max] = ["p50_ns", "p99_ns", "p999_ns", "max_ns"]
                .map(|name| format!("{:.0}", figures.median(&path(name))));
            let _ = writeln!(
                out,
                "| {protocol} | {rate} | {done} | {ratio} | {p50} | {p99} | {p999} | {max} |"
            );
        }
    }
}

fn size(out: &mut String, figures: &Figures) {
    *out += "\n## Size and start-up\n\nFour programs that differ in 1,000 checks. Code is with its \
             alignment.\n\n| | branch site | value site, 4 bytes | atomic load and branch |\n\
             | --- | --- | --- | --- |\n";
    for (what, path) in [
        ("bytes of code", "code"),
        ("bytes that are loaded", "loaded"),
        ("bytes in the file, with symbols and line tables", "file"),
    ] {
        let at = |kind: &str| round(figures.median(&format!("size.{path}_bytes_{kind}")));
        let [branch, value, atomic] = ["branch", "value4", "atomic"].map(at);
        let _ = writeln!(out, "| {what} | {branch} | {value} | {atomic} |");
    }
    let record = round(figures.median("size.record_bytes"));
    let _ = writeln!(out, "| of them record | {record} | {record} | 0 |");
    let _ = writeln!(
        out,
        "\n`.rela.dyn` has {} entries more for 1,000 sites than for none: they belong to the variable \
         and the program, none to a site. Registering 100,000 sites takes {} ns a site and {} bytes \
         of memory; their first set takes {} bytes more a site.\n\n\
         | compile time of 1,000 checks | s | more than none | times none |\n| --- | --- | --- | --- |",
        round(figures.median("size.relocations_program")),
        cell(figures, "register.sites_100000_ns_per_site"),
        round(figures.median("register.memory_bytes_per_site")),
        round(figures.median("register.memory_bytes_per_site_once_set")),
    );
    for name in ["none", "atomic", "branch"] {
        let text = beside(figures, &format!("compile.{name}_s"), "compile.none_s");
        let _ = writeln!(out, "| {name} | {text} |");
    }
}
