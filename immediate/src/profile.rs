//! Hit counters and scoped timers behind immediates: one `nop` each while they are off, switched by
//! name in a running program. Feature `profile`.
//!
//! ```
//! use immediate::{Immediate, immediate, profile};
//!
//! /// Profiles the parser.
//! #[immediate(name = "profile.parse")]
//! static PARSE: Immediate<bool> = Immediate::new(false);
//!
//! fn parse(text: &str) -> usize {
//!     profile::timed!(PARSE, {
//!         text.split(' ').map(|word| {
//!             profile::hit!(PARSE);
//!             word.len()
//!         }).sum()
//!     })
//! }
//!
//! parse("not counted");
//! immediate::set_named(&[("profile.parse", "on")])?; // or IMMEDIATE=…, or the command `immediate`
//! parse("a bc");
//! parse("def");
//!
//! let report = profile::report();
//! let point = report.points.iter().find(|point| point.name == "profile.parse").expect("reached");
//! assert_eq!((point.hits, point.timed), (3, 2));
//! println!("{report}");
//! # Ok::<(), immediate::Error>(())
//! ```
//!
//! # How it counts
//!
//! Each thread has a buffer of its own, into which it writes without a lock: a counter for each
//! variable, and a ring of the scopes that have ended. [`report`] collects all buffers. A ring holds
//! [`RING`] scopes; those that find it full are counted as lost, so a program that is timed for long
//! calls [`report`] now and then. The first event of a thread, and the first of a variable, take a
//! lock.
//!
//! Time is the wall clock, so a scope that waits is seen to wait: sleep and scheduling show as well
//! as work. A scope belongs to its thread and cannot be held across an `await` that may change it.

mod collector;
mod local;
mod point;
mod report;
mod ring;

pub use crate::{__profile_hit as hit, __profile_timed as timed};
pub use report::{PointReport, Report};
pub use ring::RING;

/// What the macros' expansions name. No part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use super::local::{Scope, enter, hit};
    pub use super::point::Point;
}

/// What has been counted and timed since the start or the last [`reset`].
///
/// Collects the buffers of all threads; they go on meanwhile.
#[must_use]
pub fn report() -> Report {
    collector::lock().report()
}

/// Forgets what has been counted and timed.
///
/// ```
/// immediate::profile::reset();
/// assert!(immediate::profile::report().points.iter().all(|point| point.hits == 0));
/// ```
pub fn reset() {
    collector::lock().reset();
}

/// How often the points behind the variable of this name were reached while it was on; `None` where
/// none was.
#[must_use]
pub fn hits(name: &str) -> Option<u64> {
    collector::lock().hits(name)
}

/// Counts a hit while the variable, a `bool` with [`#[immediate]`](macro@crate::immediate), is on.
///
/// ```
/// # use immediate::{Immediate, immediate, profile};
/// #[immediate]
/// static RETRIES: Immediate<bool> = Immediate::new(true);
///
/// profile::hit!(RETRIES);
/// assert_eq!(profile::hits(RETRIES.name()), Some(1));
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __profile_hit {
    ($($variable:ident)::+) => {
        $crate::immediate_if!($($variable)::+ => {
            static POINT: $crate::profile::__private::Point =
                $crate::profile::__private::Point::new(&$($variable)::+);
            $crate::profile::__private::hit(&POINT);
        })
    };
}

/// Evaluates an expression, and times it while the variable, a `bool` with
/// [`#[immediate]`](macro@crate::immediate), is on.
///
/// The expression stands in the program twice, timed and not, which is why it costs nothing but a
/// `nop` when it is off; write a call where it is large. It may use `return`, `break` and `?`.
///
/// ```
/// # use immediate::{Immediate, immediate, profile};
/// #[immediate]
/// static QUERY: Immediate<bool> = Immediate::new(false);
///
/// let sum: u32 = profile::timed!(QUERY, (1..4).sum());
/// assert_eq!(sum, 6);
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __profile_timed {
    ($($variable:ident)::+, $timed:expr $(,)?) => {
        $crate::immediate_if!($($variable)::+ => {
            static POINT: $crate::profile::__private::Point =
                $crate::profile::__private::Point::new(&$($variable)::+);
            let _scope = $crate::profile::__private::enter(&POINT);
            $timed
        } else {
            $timed
        })
    };
}
