//! The macros of the crate `log` with the same names and arguments. A call above the maximum level
//! is one `nop`, where the original loads and compares.
//!
//! Put `use immediate_log::{debug, error, info, trace, warn};` in the place of the `use` of `log`. All
//! else of `log` is here as well. Once the logger is installed, and whenever the maximum level
//! changes, call [`set_max_level`] or [`follow`]:
//!
//! ```
//! use immediate_log::{LevelFilter, debug, info};
//!
//! // Here a logger is installed, which may call `log::set_max_level` itself; then:
//! immediate_log::follow()?;
//!
//! info!("one nop, because no logger is installed here");
//! immediate_log::set_max_level(LevelFilter::Debug)?;
//! debug!(target: "parser", "{} words", 3);
//! # Ok::<(), immediate::Error>(())
//! ```
//!
//! Before the first of them every call goes on to the original macro, so none is missed. From then on
//! a call reaches the original only up to the level that was given, and the original decides as ever:
//! a level that is raised by `log::set_max_level` alone is not seen before the next [`follow`].

/// What the macros' expansions name. No part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use immediate::{immediate_if, immediate_read};
    pub use log;
}

use immediate::{Error, Immediate, immediate};
pub use log::*;

/// The maximum level: 0 for off, 1 for errors, up to 5 for everything.
#[immediate(name = "log.max_level")]
pub static MAX_LEVEL: Immediate<u8> = Immediate::new(LevelFilter::Trace as u8);

/// Sets the maximum level, here and in `log`.
///
/// # Errors
///
/// As [`Immediate::set`]; then neither has changed.
pub fn set_max_level(level: LevelFilter) -> Result<(), Error> {
    let before = log::max_level();
    // `log` first when more is let through, last when less is: nothing that both levels allow is
    // lost in between.
    if level > before {
        log::set_max_level(level);
    }
    let result = MAX_LEVEL.set(level as u8);
    log::set_max_level(if result.is_ok() { level } else { before });
    result
}

/// Takes over the maximum level that `log` has.
///
/// # Errors
///
/// As [`Immediate::set`]; then the level that was followed before is kept.
pub fn follow() -> Result<(), Error> {
    MAX_LEVEL.set(log::max_level() as u8)
}

/// Logs at a level that is known only when the program runs: a `mov` and a comparison.
#[macro_export]
macro_rules! log {
    (logger: $logger:expr, target: $target:expr, $level:expr, $($rest:tt)+) => {{
        let level: $crate::Level = $level;
        if level as u8 <= $crate::__private::immediate_read!($crate::MAX_LEVEL) {
            $crate::__private::log::log!(logger: $logger, target: $target, level, $($rest)+);
        }
    }};
    (logger: $logger:expr, $level:expr, $($rest:tt)+) => {{
        let level: $crate::Level = $level;
        if level as u8 <= $crate::__private::immediate_read!($crate::MAX_LEVEL) {
            $crate::__private::log::log!(logger: $logger, level, $($rest)+);
        }
    }};
    (target: $target:expr, $level:expr, $($rest:tt)+) => {{
        let level: $crate::Level = $level;
        if level as u8 <= $crate::__private::immediate_read!($crate::MAX_LEVEL) {
            $crate::__private::log::log!(target: $target, level, $($rest)+);
        }
    }};
    ($level:expr, $($rest:tt)+) => {{
        let level: $crate::Level = $level;
        if level as u8 <= $crate::__private::immediate_read!($crate::MAX_LEVEL) {
            $crate::__private::log::log!(level, $($rest)+);
        }
    }};
}

/// Logs an error; one `nop` when the maximum level is off.
#[macro_export]
macro_rules! error {
    ($($arguments:tt)+) => {
        $crate::__private::immediate_if!($crate::MAX_LEVEL >= 1 => {
            $crate::__private::log::error!($($arguments)+);
        })
    };
}

/// Logs a warning; one `nop` when the maximum level is below `Warn`.
#[macro_export]
macro_rules! warn {
    ($($arguments:tt)+) => {
        $crate::__private::immediate_if!($crate::MAX_LEVEL >= 2 => {
            $crate::__private::log::warn!($($arguments)+);
        })
    };
}

/// Logs an information; one `nop` when the maximum level is below `Info`.
#[macro_export]
macro_rules! info {
    ($($arguments:tt)+) => {
        $crate::__private::immediate_if!($crate::MAX_LEVEL >= 3 => {
            $crate::__private::log::info!($($arguments)+);
        })
    };
}

/// Logs what helps to find faults; one `nop` when the maximum level is below `Debug`.
#[macro_export]
macro_rules! debug {
    ($($arguments:tt)+) => {
        $crate::__private::immediate_if!($crate::MAX_LEVEL >= 4 => {
            $crate::__private::log::debug!($($arguments)+);
        })
    };
}

/// Logs every step; one `nop` when the maximum level is below `Trace`.
#[macro_export]
macro_rules! trace {
    ($($arguments:tt)+) => {
        $crate::__private::immediate_if!($crate::MAX_LEVEL >= 5 => {
            $crate::__private::log::trace!($($arguments)+);
        })
    };
}
