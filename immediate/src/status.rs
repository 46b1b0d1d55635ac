//! How the next set would be carried out, and why not better.

use std::fmt;

use immediate_arch::{Outcome, Outlook, Protocol, Refusal, Rejected, RejectedWriter, Writer, isa};

use crate::config;
use crate::error::Error;
use crate::lock;
use crate::runtime::{self, Interface};

/// The state of the runtime; its text is for people.
///
/// ```
/// let status = immediate::status();
/// println!("{status}");
/// if let Some(protocol) = status.protocol {
///     assert!(status.refusal.is_none(), "{protocol} can be used");
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The instruction set of the sites; `plain` where variables are read by plain loads.
    pub target: &'static str,
    /// The protocol that the next set would take.
    pub protocol: Option<Protocol>,
    /// The writer that the next set of one site would take.
    pub writer: Option<Writer>,
    /// Whether a set is one instant for all threads, sites and variables. Plain loads change one
    /// variable after another.
    pub one_instant: bool,
    /// Each better protocol that cannot be used, and why.
    pub rejected: Vec<Rejected>,
    /// Each writer that cannot be used, and why.
    pub rejected_writers: Vec<RejectedWriter>,
    /// Why nothing can be set, if so.
    pub refusal: Option<Error>,
    /// Loaded modules that have variables or sites.
    pub modules: usize,
    /// Variables in them.
    pub variables: usize,
    /// Sites in them.
    pub sites: usize,
    /// Sets and batches that succeeded.
    pub updates: u64,
    /// How the last change of code was carried out.
    pub last: Option<Outcome>,
}

/// Tells how the next set would be carried out, and for each better way why it is not open.
///
/// Changes no variable and no site: text is made writable and put back, to see whether that can be
/// done, and each writer is tried once a process on a site of the library's own.
#[must_use]
pub fn status() -> Status {
    runtime::foreign().and_then(Interface::status).unwrap_or_else(here)
}

/// The state of this copy's runtime.
pub(crate) fn here() -> Status {
    let mut status = Status {
        target: isa::imp::NAME,
        protocol: None,
        writer: None,
        one_instant: false,
        rejected: Vec::new(),
        rejected_writers: Vec::new(),
        refusal: None,
        modules: 0,
        variables: 0,
        sites: 0,
        updates: 0,
        last: None,
    };
    let mut locked = match lock::lock() {
        Ok(locked) => locked,
        Err(error) => {
            status.refusal = Some(error);
            return status;
        }
    };
    let registry = locked.registry();
    status.modules = registry.modules().count();
    status.variables = registry.entries().count();
    status.sites = registry.modules().map(|(_, module)| module.site_count()).sum();
    status.updates = registry.updates;
    status.last = registry.last.clone();
    config::settle(registry);
    if isa::imp::TRAP.is_empty() {
        return status;
    }
    match registry.patcher.foresee(1) {
        Ok(Outlook { protocol, writer, rejected, rejected_writers }) => {
            status.protocol = Some(protocol);
            status.writer = Some(writer);
            status.one_instant = protocol.is_one_instant();
            status.rejected = rejected;
            status.rejected_writers = rejected_writers;
        }
        Err(Refusal::NoProtocol(rejected)) => {
            status.rejected = rejected.clone();
            status.refusal = Some(Refusal::NoProtocol(rejected).into());
        }
        Err(Refusal::NotWritable(rejected)) => {
            status.rejected_writers = rejected.clone();
            status.refusal = Some(Refusal::NotWritable(rejected).into());
        }
        Err(refusal) => status.refusal = Some(refusal.into()),
    }
    status
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Status { modules, variables, sites, updates, .. } = self;
        writeln!(out, "target     {}", self.target)?;
        match (self.protocol, self.writer) {
            (Some(protocol), Some(writer)) => {
                writeln!(out, "protocol   {protocol}")?;
                writeln!(out, "writer     {writer}")?;
            }
            _ if self.refusal.is_none() => writeln!(out, "protocol   none needed: plain loads")?,
            _ => writeln!(out, "protocol   none")?,
        }
        if self.refusal.is_none() {
            let instant = match self.protocol {
                _ if self.one_instant => "one instant for all threads",
                Some(_) => "site by site",
                None => "variable by variable",
            };
            writeln!(out, "a set is   {instant}")?;
        }
        for rejected in &self.rejected {
            writeln!(out, "not        {rejected}")?;
        }
        for rejected in &self.rejected_writers {
            writeln!(out, "not        {rejected}")?;
        }
        if let Some(refusal) = &self.refusal {
            writeln!(out, "refused    {refusal}")?;
        }
        writeln!(out, "loaded     {modules} modules, {variables} variables, {sites} sites")?;
        write!(out, "updates    {updates}")?;
        if let Some(last) = &self.last {
            write!(
                out,
                "\nlast       {} sites by {} and {}",
                last.sites, last.protocol, last.writer
            )?;
            if last.trapping > 0 {
                write!(out, "; {} still trap, and the next set repairs them", last.trapping)?;
            }
            if let Some(failure) = &last.left_writable {
                write!(out, "; the text stayed writable: {failure}")?;
            }
        }
        Ok(())
    }
}
