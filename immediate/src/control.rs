//! Operating a running program from outside: a Unix socket by which its variables are listed and
//! set. Feature `control`, Linux.
//!
//! One line in `main`, and the command `immediate` (package `immediate-cli`) finds the program:
//!
//! ```
//! # fn main() -> std::io::Result<()> {
//! let _control = immediate::control::serve()?;
//! # Ok(())
//! # }
//! ```
//!
//! Without the feature there is no socket, no thread and no dependency; with it, there is none before
//! [`serve`] or [`toggle_on`] is called.
//!
//! # Who may connect
//!
//! The socket has mode 0600 and lies in a directory of mode 0700 ([`directories`] names the places),
//! and the credentials of every peer are checked: the user that the program runs as, or root. Whoever
//! passes may set every variable.
//!
//! # What it costs the program
//!
//! One thread, which waits in `poll` while nobody asks. It blocks the signals that a program may wait
//! for itself, but none that a set needs. From [`serve`] on the process has a second thread, so
//! [`set_early`](crate::Immediate::set_early) belongs before it. A request takes the update lock as
//! long as a call of [`variables`](crate::variables) or [`Batch::apply`](crate::Batch::apply) does.
//!
//! A client that sends nothing, half a line, or does not read its answers keeps nobody waiting: no
//! socket is ever waited for alone. Of a client the endpoint holds at most one request
//! ([`MAX_REQUEST`] bytes) and one answer, and it reads no further request before that answer has
//! been taken. With [`MAX_CLIENTS`] connections open, a new one closes the one that has been silent
//! longest.
//!
//! # The protocol
//!
//! A request is one line of JSON, so is its answer; answers come in the order of the requests.
//! Names and values are text, values in the notation of [`Variable::value`](crate::Variable::value).
//!
//! | request | answer |
//! | --- | --- |
//! | `{"do":"hello"}` | which program this is |
//! | `{"do":"list","patterns":["server::*"],"from":0}` | variables whose names match; all without `patterns`. At most [`PAGE`] of them; `next` says from where to go on |
//! | `{"do":"get","names":["server::LIMIT"]}` | these variables |
//! | `{"do":"set","values":[["server::LIMIT","512"],["server::TRACE","on"]]}` | what was set, old and new; one batch, all or nothing |
//! | `{"do":"set","values":[…],"for_ms":30000}` | the same, and the old values come back after this time, also when the client is gone |
//! | `{"do":"status"}` | how a set is carried out, and what it cost |
//!
//! An answer is `{"ok":{"variables":{…}}}`, named after its kind, or
//! `{"error":{"kind":"unknown_name","message":"…","item":"…","valid":["…"]}}`. After an error nothing
//! has changed. [`Request`], [`Reply`] and what they hold are the exact types. A pattern may hold `*`
//! for any text and `?` for one character.
//!
//! A value with a time comes back only if nobody has set the variable since: a later set without a
//! time keeps its value, a later one with a time comes back to the first old value. When the endpoint
//! closes, they come back at once.
//!
//! # Fork
//!
//! A child of `fork` does not serve its parent's socket: its copies of the descriptors are closed,
//! and the socket is not removed when it ends. It may call [`serve`] itself.

mod answer;
mod connection;
mod directory;
mod endpoint;
mod pattern;
mod protocol;
mod restore;
mod server;
mod signals;
mod toggle;

pub use connection::MAX_REQUEST;
pub use directory::directories;
pub use endpoint::{Endpoint, serve};
pub use protocol::{
    Answer, Cost, Fault, FaultKind, ModuleState, PAGE, Program, Reply, Request, SetState, Setting,
    State, VERSION, VariableState,
};
pub use server::MAX_CLIENTS;
pub use toggle::{Toggle, toggle_on};
