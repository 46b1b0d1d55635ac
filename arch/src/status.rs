//! What was done, and why not otherwise: typed, each with one line for people.

use std::fmt;

use crate::os::Failure;
use crate::protocol::Protocol;

/// How bytes get into read-only text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Writer {
    /// The segment becomes writable for the batch, then is as before.
    Mprotect,
    /// Each store is a write to `/proc/self/mem`.
    Procmem,
}

impl Writer {
    /// Its name, as in `IMMEDIATE_WRITER`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Writer::Mprotect => "mprotect",
            Writer::Procmem => "procmem",
        }
    }

    /// All of them.
    pub const ALL: &[Writer] = &[Writer::Mprotect, Writer::Procmem];
}

impl fmt::Display for Writer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// Why a protocol cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A system call that it needs failed.
    Failed(Failure),
    /// A thread blocks SIGTRAP; a trap in it would kill the process.
    ThreadBlocksTrap {
        /// Kernel id of the thread, as in `/proc/self/task`.
        thread: i32,
    },
    /// A handler that is installed blocks SIGTRAP while it runs.
    HandlerBlocksTrap {
        /// The signal that it handles.
        signal: i32,
    },
    /// A debugger, or another tool that traces, would be given the traps first, and may keep them.
    Traced {
        /// Its process.
        tracer: i32,
    },
    /// Someone installed another handler for SIGTRAP after ours.
    HandlerReplaced,
    /// A thread blocks the signal that stops it.
    ThreadBlocksStop {
        /// Kernel id of the thread.
        thread: i32,
        /// The signal.
        signal: i32,
    },
    /// A thread did not stop in time.
    ThreadNotStopped {
        /// Kernel id of the thread.
        thread: i32,
    },
    /// The program handles the real-time signal that was asked for, or every one of them.
    NoSignal {
        /// What the configuration asks for.
        wanted: Option<i32>,
    },
    /// The threads of the process cannot be listed.
    ThreadsUnknown {
        /// `errno` of what failed under `/proc/self/task`.
        errno: i32,
    },
    /// The change must be one instant for all threads, which this protocol does not give.
    NotOneInstant,
    /// The processor's manual does not allow what this protocol does.
    NotInManual {
        /// The processor's vendor.
        vendor: String,
    },
    /// The writer does not store a whole word at once, which the protocol needs.
    NotOneStore,
    /// None of the writers that can be used here suits the protocol.
    NoWriter(Vec<RejectedWriter>),
    /// What was stored is not what is executed, as under some emulators.
    NotSeen,
    /// The process has more than one thread, or it is not known how many.
    NotAlone,
    /// The configuration asks for another.
    NotConfigured,
    /// This build or this machine has no sites.
    NoSites,
    /// As the runtime of another module tells it.
    Told(String),
}

impl Reason {
    pub(crate) fn unreadable(error: std::io::Error) -> Self {
        Reason::ThreadsUnknown { errno: error.raw_os_error().unwrap_or(0) }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Failed(failure) => write!(out, "{failure}"),
            Reason::ThreadBlocksTrap { thread } => write!(
                out,
                "thread {thread} blocks SIGTRAP, so a trap would kill the process; unblock SIGTRAP \
                 in that thread"
            ),
            Reason::HandlerBlocksTrap { signal } => write!(
                out,
                "the handler of signal {signal} blocks SIGTRAP while it runs; remove SIGTRAP from \
                 its sa_mask"
            ),
            Reason::Traced { tracer } => write!(
                out,
                "process {tracer} traces this one, and a debugger keeps SIGTRAP for itself; configure \
                 int3 if yours passes it on"
            ),
            Reason::HandlerReplaced => out.write_str(
                "another handler for SIGTRAP was installed after the first set; install it before",
            ),
            Reason::ThreadBlocksStop { thread, signal } => write!(
                out,
                "thread {thread} blocks signal {signal}, which stops it; unblock one real-time \
                 signal in that thread and configure it"
            ),
            Reason::ThreadNotStopped { thread } => write!(
                out,
                "thread {thread} did not stop in time: it waits in the kernel where no signal \
                 reaches it, or is not given the processor; a later set may succeed"
            ),
            Reason::NoSignal { wanted: Some(signal) } => {
                write!(out, "the program handles signal {signal} itself; configure another")
            }
            Reason::NoSignal { wanted: None } => {
                out.write_str("the program handles every real-time signal itself; leave one free")
            }
            Reason::ThreadsUnknown { errno } => write!(
                out,
                "/proc/self/task cannot be read ({}), so the threads cannot be seen; mount /proc or \
                 configure quadword",
                std::io::Error::from_raw_os_error(*errno)
            ),
            Reason::NotOneInstant => out.write_str(
                "the configuration requires that a change is one instant for all threads",
            ),
            Reason::NotInManual { vendor } => write!(
                out,
                "the manual of this processor ({vendor}) does not allow it; choose it by \
                 configuration if you know better"
            ),
            Reason::NotOneStore => {
                out.write_str("it does not store a whole word at once, which the protocol needs")
            }
            Reason::NoWriter(rejected) => {
                out.write_str("no text writer suits it")?;
                let mut separator = " (";
                for one in rejected {
                    write!(out, "{separator}{one}")?;
                    separator = "; ";
                }
                out.write_str(")")
            }
            Reason::NotSeen => out.write_str(
                "what it stores is not what is executed here; valgrind needs --smc-check=all",
            ),
            Reason::NotAlone => out.write_str(
                "the process has more than one thread; configure int3, quadword or stop-world",
            ),
            Reason::NotConfigured => out.write_str("the configuration chooses another"),
            Reason::Told(text) => out.write_str(text),
            Reason::NoSites => out.write_str("this build reads variables by plain loads"),
        }
    }
}

/// A protocol that was not used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The protocol.
    pub protocol: Protocol,
    /// Why not.
    pub reason: Reason,
}

impl fmt::Display for Rejected {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.protocol, self.reason)
    }
}

/// A text writer that was not used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedWriter {
    /// The writer.
    pub writer: Writer,
    /// Why not.
    pub reason: Reason,
}

impl fmt::Display for RejectedWriter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.writer, self.reason)
    }
}

/// How the next batch would be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// The protocol.
    pub protocol: Protocol,
    /// The writer.
    pub writer: Writer,
    /// Better protocols that cannot be used.
    pub rejected: Vec<Rejected>,
    /// Writers that cannot be used.
    pub rejected_writers: Vec<RejectedWriter>,
}

/// How a batch was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The protocol that was used.
    pub protocol: Protocol,
    /// The writer that was used.
    pub writer: Writer,
    /// Better protocols that could not be used.
    pub rejected: Vec<Rejected>,
    /// Writers that could not be used.
    pub rejected_writers: Vec<RejectedWriter>,
    /// Sites whose bytes were changed.
    pub sites: usize,
    /// Sites that still hold a trap because a processor barrier failed on the way. They read right,
    /// through the handler, and the next batch repairs them.
    pub trapping: usize,
    /// The protection of the text could not be put back.
    pub left_writable: Option<Failure>,
}
