//! How a violation is told: one line, from any thread and from a signal handler.
//!
//! # Invariants
//!
//! * `V1` Nothing here allocates or takes a lock: a handler may have interrupted who holds it.

#![allow(unsafe_code)]

use std::fmt::{self, Write};

use immediate_tests::signals;

/// What was read and what would have been right.
pub(crate) struct Violation {
    /// What went wrong, in words.
    pub(crate) what: &'static str,
    /// The site, or what else.
    pub(crate) site: &'static str,
    /// What it gave.
    pub(crate) bits: u64,
    /// The generation that it is of, if it is of one.
    pub(crate) generation: Option<u64>,
    /// The generations that would have been right.
    pub(crate) allowed: (u64, u64),
}

impl Violation {
    /// One that is not about a read.
    pub(crate) fn of_program(what: &'static str) -> Self {
        Violation { what, site: "the program", bits: 0, generation: None, allowed: (0, 0) }
    }
}

/// Tells it and ends the process with status 1.
#[cold]
pub(crate) fn exit(violation: &Violation) -> ! {
    let mut line = Line { bytes: [0; 512], length: 0 };
    let Violation { what, site, bits, generation, allowed: (from, to) } = violation;
    let (thread, process) = (signals::own_id(), std::process::id());
    let _ = write!(line, "violation: {what}: {site} gave {bits:#018x}");
    if let Some(generation) = generation {
        let _ = write!(line, ", which is generation {generation}");
    }
    let _ = write!(line, "; right would have been {from}..={to}; thread {thread} of {process}");
    let _ = writeln!(line, "\nviolations 1");
    // SAFETY: V1; writes bytes that we own, then ends the process without running anything more.
    unsafe {
        libc::write(libc::STDERR_FILENO, line.bytes.as_ptr().cast(), line.length);
        libc::_exit(1)
    }
}

/// Text of a bounded length, in place.
struct Line {
    bytes: [u8; 512],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.length..];
        let length = text.len().min(room.len());
        room[..length].copy_from_slice(&text.as_bytes()[..length]);
        self.length += length;
        Ok(())
    }
}
