//! The same calls by the macros of `log` and by ours, at every maximum level: the same records, and
//! arguments that are evaluated as often.

use std::sync::Mutex;

use immediate_log::{LevelFilter, Log, Metadata, Record};

static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Recorder;

impl Log for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() != "silent"
    }

    fn log(&self, record: &Record<'_>) {
        let (level, target, module) = (record.level(), record.target(), record.module_path());
        let text = format!("{level} {target} {module:?} {:?} {}", record.file(), record.args());
        SEEN.lock().expect("no panic").push(text);
    }

    fn flush(&self) {}
}

/// Defines a function that makes the calls with the macros of a crate.
macro_rules! calls {
    ($name:ident, $($macros:tt)+) => {
        fn $name() -> u32 {
            use $($macros)+::{Level, debug, error, info, log, trace, warn};
            let mut evaluated = 0;
            let mut next = || {
                evaluated += 1;
                evaluated
            };
            let name = "captured";
            error!("first {}", next());
            warn!(target: "other", "second {name} {}", next());
            info!("third {:>4}", next());
            debug!("fourth {word}", word = next());
            trace!(target: "silent", "fifth {}", next());
            if false { info!("never") } else { trace!("as an arm") }
            for level in [Level::Error, Level::Warn, Level::Info, Level::Debug, Level::Trace] {
                log!(level, "at a level {}", next());
                log!(target: "levels", level, "{}", next());
                log!(logger: Recorder, level, "own logger {}", next());
                info!(logger: Recorder, target: "own", "{}", next());
            }
            evaluated
        }
    };
}

calls!(original, log);
calls!(ours, immediate_log);

const LEVELS: [LevelFilter; 6] = [
    LevelFilter::Off,
    LevelFilter::Error,
    LevelFilter::Warn,
    LevelFilter::Info,
    LevelFilter::Debug,
    LevelFilter::Trace,
];

fn seen(calls: fn() -> u32) -> (u32, Vec<String>) {
    let evaluated = calls();
    (evaluated, std::mem::take(&mut *SEEN.lock().expect("no panic")))
}

#[test]
fn same_records_at_every_level() -> Result<(), immediate::Error> {
    log::set_logger(&Recorder).expect("the only one");
    // Before the level is followed nothing is missed, whoever sets it.
    for level in LEVELS {
        log::set_max_level(level);
        assert_eq!(seen(ours), seen(original), "{level} before it is followed");
    }
    for level in LEVELS.into_iter().chain(LEVELS.into_iter().rev()) {
        immediate_log::set_max_level(level)?;
        assert_eq!(log::max_level(), level);
        assert_eq!(seen(ours), seen(original), "{level}");
    }
    for level in LEVELS {
        log::set_max_level(level);
        immediate_log::follow()?;
        assert_eq!(seen(ours), seen(original), "{level}, followed");
    }
    // It is our switch that keeps a call away, not the original behind it.
    log::set_max_level(LevelFilter::Trace);
    immediate_log::MAX_LEVEL.set(0)?;
    assert_eq!(seen(ours), (0, Vec::new()));
    if immediate::status().target != "plain" {
        assert!(immediate_log::MAX_LEVEL.site_count() >= 8);
    }
    Ok(())
}
