//! Immediate values: variables that live in the instruction stream of a running program.
//!
//! Reading one is a `mov reg, imm`, testing one is a `nop` or a `jmp`; setting one patches every
//! place that reads it while all threads go on running.
//!
//! ```
//! use immediate::{Batch, Immediate, immediate, immediate_if, immediate_read};
//!
//! /// Verbosity of the request log.
//! #[immediate]
//! pub static VERBOSITY: Immediate<u8> = Immediate::new(0);
//!
//! #[immediate]
//! static TRACE: Immediate<bool> = Immediate::new(false);
//!
//! #[immediate]
//! static LIMIT: Immediate<usize> = Immediate::new(2);
//!
//! fn handle(request: &str) -> usize {
//!     if immediate_if!(TRACE) {
//!         println!("handling {request}"); // a nop while TRACE is false
//!     }
//!     if immediate_if!(VERBOSITY >= 2) {
//!         println!("{} bytes", request.len()); // a nop too: decided when VERBOSITY is set
//!     }
//!     request.len().min(immediate_read!(LIMIT)) // mov reg, imm
//! }
//!
//! assert_eq!(handle("abc"), 2);
//! TRACE.set(true)?; // one variable
//! Batch::new().set(&VERBOSITY, 2).set(&LIMIT, 100).apply()?; // many, at one instant
//! assert_eq!(handle("abc"), 3);
//! # Ok::<(), immediate::Error>(())
//! ```
//!
//! # What it gains
//!
//! With a warm cache the gain over a relaxed atomic load is small. The gains are: no data-cache line
//! and no branch-predictor slot; flags that today cost far more than a load; updates that are safe
//! in a multi-threaded program, with a stated guarantee; a program whose switches can be listed and
//! set from outside.
//!
//! # Guarantees
//!
//! 1. A read gives the initial value or the value of a set that has begun; never a mixture.
//! 2. When a set returns `Ok`, every read that any thread starts afterwards gives that value or a
//!    later one. While it runs, a read gives the old or the new value, and a thread that has read
//!    the new value at a site never reads the old one there again. With the protocols `int3` and
//!    `single` the change is *one instant for all threads, all sites and all variables of a batch*:
//!    whoever has seen one new value sees, from then on and through whatever it then tells others,
//!    all of them. `quadword` does not promise that; [`status`] says which holds, and [`Config`]
//!    can require it. [`Immediate::get`] reads memory and is not part of the instant.
//! 3. Memory that was written before a set is visible to whoever reads the new value and reaches
//!    that memory through it (a pointer) or in the arm of an [`immediate_if!`]. Code that reads
//!    other memory after [`immediate_read!`], or after the arm that is laid out as the straight
//!    way, puts a `compiler_fence(Acquire)` between, which is no instruction.
//! 4. A set or a whole batch that returns `Err` changed nothing, and the error says why in one line.
//! 5. Reading is async-signal-safe and changes no register but its result, no flags and no memory.
//!    Setting is not for signal handlers.
//! 6. A program that never sets anything pays nothing: no thread, no signal handler, no writable
//!    text, no start-up work but registering its modules.
//!
//! # How it works
//!
//! The templates of the sites and the protocols are documented in the crate
//! [`immediate_arch`]: [`isa`](immediate_arch::isa) and the files under `protocol`.

// The macros name this crate by `::immediate`, here as in the crates of its users.
extern crate self as immediate;

mod backing;
mod batch;
mod comparison;
mod config;
#[cfg(all(feature = "control", target_os = "linux"))]
pub mod control;
mod declare;
mod declared;
mod descriptor;
mod error;
mod exchange;
mod initial;
mod introspect;
mod lock;
mod module;
mod named;
mod objects;
#[cfg(all(feature = "plugin", unix))]
pub mod plugin;
#[cfg(feature = "profile")]
pub mod profile;
mod record;
mod registry;
mod runtime;
mod similar;
mod sites;
mod status;
mod update;
mod value;
mod variable;

pub use batch::{Batch, Guard, lock};
pub use config::{Config, configure};
pub use descriptor::Place;
pub use error::Error;
pub use immediate_arch::{
    Failure, Mismatch, Outcome, Protocol, Reason, Refusal, Rejected, RejectedWriter, Writer,
};
pub use immediate_macros::{ImmediateValue, immediate};
pub use introspect::{Module, Site, SiteForm, Variable, find, lookup, modules, sites, variables};
pub use named::{Assigned, set_named};
pub use status::{Status, status};
pub use value::{ImmediateValue, Kind};
pub use variable::Immediate;

/// The example of the README, which runs with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// What the macros' expansions name. No part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use immediate_arch as arch;

    pub use crate::__on_taken as on_taken;
    pub use crate::comparison::{Operator, compare};
    pub use crate::declare::by_constructor::enter_variable;
    pub use crate::declare::declare;
    pub use crate::declared::*;
    pub use crate::descriptor::{Descriptor, Place};
    pub use crate::exchange::Bits;
    pub use crate::module::{enter, leave};
    pub use crate::sites::{site_branch, site_comparison, site_test, site_value};
    pub use crate::value::Kind;
}
