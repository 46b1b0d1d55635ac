//! A library that is loaded and unloaded over and over: `examples/torture_plugin.rs`, beside this program.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use immediate_tests::library::Library;
use immediate_tests::scatter::{gather64, scatter64};

use crate::sites::{COUNTED, Site, Tells};
use crate::violation::{self, Violation};
use crate::{HAS_SITES, is_over};

/// Times that it was loaded.
pub(crate) static LOADED: AtomicU64 = AtomicU64::new(0);

/// Sites in it: what each is called in a report, its function, and how its bits tell.
const SITES: [(&str, &str, Tells); 3] = [
    ("u64 of a plugin, first", "first", Tells::Itself(gather64)),
    ("u64 of a plugin, second", "second", Tells::Itself(gather64)),
    ("branch of a plugin", "odd", Tells::Among(|generation| scatter64(generation) & 1)),
];

/// Reads between one load and the next.
const READS: usize = 50;

/// Where it lies, if it has been built.
pub(crate) fn path() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let path = own.parent()?.join("examples").join("libtorture_plugin.so");
    (HAS_SITES && path.exists()).then_some(path)
}

/// Loads it, reads, unloads it, until the run is over.
pub(crate) fn load_and_unload(path: &std::path::Path) {
    while !is_over() {
        let plugin = match Library::load(path) {
            Ok(plugin) => plugin,
            Err(error) => {
                eprintln!("torture: {error}");
                violation::exit(&Violation::of_program("the plugin could not be loaded"))
            }
        };
        for (name, function, tells) in SITES {
            let read = plugin.function(function);
            let site = Site { name, read: || 0, tells, window: &COUNTED };
            let mut seen = 0;
            for _ in 0..READS {
                let (bits, from, to) = COUNTED.read(|| read());
                site.judge(bits, (from, to), &mut seen);
            }
        }
        plugin.unload();
        LOADED.fetch_add(1, SeqCst);
        std::thread::sleep(Duration::from_millis(1));
    }
}
