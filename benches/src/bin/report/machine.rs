//! The machine that a report was made on.

use std::fs::read_to_string;

use immediate_benches::processors::{self, Caches};
use serde_json::{Value, json};

/// What a reader has to know of the machine.
#[derive(Debug)]
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    is_virtual: bool,
    caches: Caches,
    kernel: String,
    load: f64,
    build: &'static str,
}

impl Machine {
    /// This one, now.
    pub(crate) fn describe() -> Self {
        let processors = read_to_string("/proc/cpuinfo").unwrap_or_default();
        let line = |name: &str| {
            let line = processors.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_string())
        };
        let load = read_to_string("/proc/loadavg").unwrap_or_default();
        Machine {
            processor: line("model name").unwrap_or_else(|| std::env::consts::ARCH.into()),
            cores: processors::allowed().len(),
            is_virtual: line("flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            caches: Caches::of_this_machine(),
            kernel: read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| "unknown".into(), |release| release.trim().to_string()),
            load: load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
        }
    }

    /// In one sentence.
    pub(crate) fn sentence(&self) -> String {
        let Machine { processor, cores, is_virtual, caches, kernel, load, build } = self;
        let Caches { first, second, last } = caches;
        format!(
            "{processor}{}, {cores} processors, caches of {} kB, {} kB and {} MB, Linux {kernel}, a \
             load of {load} when the run began, {build} build.",
            if *is_virtual { " (virtual machine)" } else { "" },
            first >> 10,
            second >> 10,
            last >> 20,
        )
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        let Machine { processor, cores, is_virtual, caches, kernel, load, build } = self;
        json!({
            "processor": processor,
            "cores": cores,
            "virtual": is_virtual,
            "cache_bytes": [caches.first, caches.second, caches.last],
            "kernel": kernel,
            "load": load,
            "build": build,
        })
    }
}
