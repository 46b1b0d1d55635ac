//! The report runs, and holds every figure that it promises.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Every figure, by its dotted path.
fn paths() -> Vec<String> {
    let mut paths = Vec::new();
    let mut add = |parts: &[&[&str]], before: &str, after: &str| {
        let mut all = vec![String::from(before)];
        for choices in parts {
            all = all
                .iter()
                .flat_map(|path| choices.iter().map(move |choice| format!("{path}{choice}")))
                .collect();
        }
        paths.extend(all.into_iter().map(|path| format!("{path}{after}")));
    };
    let contenders: &[&str] = &[
        "base",
        "immediate",
        "immediate_value",
        "atomic",
        "static_keys",
        "arc_swap",
        "log",
        "tracing",
        "rwlock",
        "parking_lot",
        "environment",
    ];
    add(&[contenders], "read.warm.", "_ns");
    add(&[&["base", "immediate", "l1", "memory"]], "read.cold.", "_cycles");
    add(
        &[
            &["compiled_out.", "immediate.", "global."],
            &["quiet", "linear", "random", "instructions"],
        ],
        "markers.",
        "_cycles",
    );
    add(&[&["compiled_out", "immediate", "global"]], "token.", "_ns");
    add(&[&["syscall", "libc", "vdso", "vdso_immediate", "vdso_atomic"]], "clock.", "_ns");
    let sites: &[&str] = &["1", "100", "1000", "10000", "100000"];
    let few: &[&str] = &sites[..4];
    let threads: &[&str] = &[".threads_0", ".threads_1", ".threads_3", ".threads_15"];
    add(&[sites], "update.single.mprotect.sites_", ".threads_0_us");
    add(&[few], "update.single.procmem.sites_", ".threads_0_us");
    add(
        &[&["int3", "quadword", "stop_world"], &[".mprotect.sites_"], sites, threads],
        "update.",
        "_us",
    );
    add(&[&["int3", "stop_world"], &[".procmem.sites_"], few, threads], "update.", "_us");
    add(&[&["int3", "quadword", "stop_world"], threads], "update.floor.", "_us");
    add(&[&["int3", "quadword"], threads], "update.floor_all.", "_us");
    add(&[&["single.threads_0"]], "update.floor.", "_us");
    add(&[sites], "update.static_keys.sites_", "_us");
    let latencies: &[&str] = &["throughput_ratio", "p50_ns", "p99_ns", "p999_ns", "max_ns"];
    add(
        &[
            &["int3", "quadword", "stop_world"],
            &[".hz_"],
            &["1.", "100.", "1000.", "10000."],
            latencies,
        ],
        "storm.",
        "",
    );
    add(
        &[&["record_bytes", "code_bytes_branch", "code_bytes_value4", "relocations_per_site"]],
        "size.",
        "",
    );
    add(&[&["none", "atomic", "branch"]], "compile.", "_s");
    add(&[&["sites_100000_ns_per_site", "memory_bytes_per_site"]], "register.", "");
    add(&[&["1", "1000", "1000000"]], "growth.others_", "_us");
    paths
}

fn at<'a>(report: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(report, |value, key| value.get(key))
}

fn run(output: &Path) -> Value {
    let programs: PathBuf = Path::new(env!("CARGO_BIN_EXE_growth_few")).parent().unwrap().into();
    let status = Command::new(env!("CARGO_BIN_EXE_report"))
        .arg("--smoke")
        .arg("--output")
        .arg(output)
        .arg("--programs")
        .arg(programs)
        .status()
        .expect("the report starts");
    assert!(status.success(), "{status}");
    let text = std::fs::read_to_string(output.join("report.json")).expect("there is a report");
    serde_json::from_str(&text).expect("it is JSON")
}

#[test]
fn holds_every_figure_in_all_its_forms() {
    if cfg!(not(all(target_arch = "x86_64", target_os = "linux", not(immediate_no_patching)))) {
        println!("a build without sites has nothing to compare");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder for the report");
    let report = run(folder.path());

    let mut missing = BTreeMap::new();
    for path in paths() {
        let figure = at(&report, &path).and_then(Value::as_f64);
        if !figure.is_some_and(|figure| figure.is_finite() && figure > 0.0) {
            missing.insert(path, figure);
            continue;
        }
        let spread = at(&report["spread"], &path).and_then(Value::as_array);
        let spread: Vec<f64> = spread.into_iter().flatten().filter_map(Value::as_f64).collect();
        assert!(spread.len() == 2 && spread[0] <= spread[1], "{path} lies within {spread:?}");
        assert!(at(&report["runs"], &path).and_then(Value::as_u64) >= Some(1), "{path} was run");
    }
    assert!(missing.is_empty(), "no finite positive number at {missing:?}");
    // What does not depend on the machine.
    assert_eq!(report["size"]["record_bytes"], 12.0);
    let code = report["size"]["code_bytes_value4"].as_f64();
    // Five bytes and the padding; the debug build does more with the value.
    assert!(code >= Some(5.0), "a value site has {code:?} bytes");
    for key in ["processor", "cores", "kernel", "load"] {
        assert!(!report["machine"][key].is_null(), "the machine is described by its {key}");
    }
    let targets = report["targets"].as_array().expect("targets are a list");
    assert!(targets.len() >= 12, "every target is printed: {targets:?}");
    for target in targets {
        let [value, bound] = ["value", "bound"].map(|key| target[key].as_f64().unwrap());
        let is_met = if target["at_least"] == true { value >= bound } else { value <= bound };
        assert_eq!(target["met"], is_met, "{target}");
    }

    let text = std::fs::read_to_string(folder.path().join("report.md")).expect("a text");
    let plots: Vec<&str> = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(".svg)").map(|(name, _)| name))
        .collect();
    assert!(plots.len() >= 8, "the text shows the plots: {plots:?}");
    for plot in plots {
        let png = std::fs::read(folder.path().join(format!("{plot}.png"))).expect("a PNG");
        assert!(
            png.starts_with(b"\x89PNG\r\n\x1a\n") && png.len() > 5_000,
            "{plot}.png is a picture"
        );
        let svg =
            std::fs::read_to_string(folder.path().join(format!("{plot}.svg"))).expect("an SVG");
        let is_whole = svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>");
        assert!(is_whole && svg.contains("<text"), "{plot}.svg is a picture with labels");
    }
    let verdicts = text.matches("| met |").count() + text.matches("| **missed** |").count();
    assert_eq!(verdicts, targets.len(), "the text gives a verdict on each target");
}
