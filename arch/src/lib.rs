//! The machine room of [`immediate`](https://docs.rs/immediate): it changes instructions of a
//! running program and knows nothing of variables or modules.
//!
//! Two axes, each chosen in one place:
//!
//! * [`isa`]: one file a target with the templates of the sites, their lengths, encoders and
//!   decoder. The encoders are safe pure functions that compile on every host.
//! * [`os`]: how text becomes writable, how processors are synchronised, how traps arrive.
//!
//! Over them stand the protocols (`protocol`), each one file that states its steps as numbers and
//! follows them. [`Patcher`] is the door: it takes a batch of [`Poke`]s, chooses protocol and
//! writer, and either makes the whole change or none of it.
//!
//! Programs use the crate `immediate`; this one has no stable interface of its own.

mod chain;
pub mod isa;
mod known;
pub mod os;
mod patcher;
mod poke;
mod protocol;
mod published;
mod status;

pub use chain::{CHAIN, Chain};
pub use known::{KnownText, TextId};
pub use os::Failure;
pub use patcher::{Limits, Patcher, Refusal};
pub use poke::{Mismatch, Poke};
pub use protocol::Protocol;
pub use status::{Outcome, Outlook, Reason, Rejected, RejectedWriter, Writer};
