//! The door to the machine room: takes a batch, makes the whole change or none of it.

#![allow(unsafe_code)]

use std::fmt;
use std::time::Duration;

use crate::isa::imp;
use crate::known::{self, KnownText, TextId};
use crate::os::stop::{self, Stopper};
use crate::os::text::{self, Memory, OpenMemory, Protection, Segment};
use crate::os::{barrier, threads, trap};
use crate::poke::Poke;
use crate::protocol::stop_world::Stop;
use crate::protocol::{Cause, End, Protocol, int3, quadword, single, stop_world};
use crate::published;
use crate::status::{Outcome, Outlook, Reason, Rejected, RejectedWriter, Writer};

/// What a program allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Use this protocol and no other.
    pub protocol: Option<Protocol>,
    /// Use this writer and no other.
    pub writer: Option<Writer>,
    /// Refuse a protocol whose batch is not one instant for all threads.
    pub one_instant: bool,
    /// The real-time signal that stops threads; `None` takes one that the program does not handle.
    pub stop_signal: Option<i32>,
    /// How long stopping the world may take.
    pub stop_within: Option<Duration>,
}

/// Why a batch was not carried out. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// No protocol can be used here.
    NoProtocol(Vec<Rejected>),
    /// No text writer can be used here.
    NotWritable(Vec<RejectedWriter>),
    /// The process has more than one thread.
    NotSingleThreaded,
    /// A site lies outside the text that its module has registered.
    OutsideText {
        /// Address of the site.
        address: usize,
    },
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NoProtocol(rejected) => {
                out.write_str("no protocol can be used")?;
                for one in rejected {
                    write!(out, "; {one}")?;
                }
                Ok(())
            }
            Refusal::NotWritable(rejected) => {
                out.write_str("the program's text cannot be written")?;
                for one in rejected {
                    write!(out, "; {one}")?;
                }
                out.write_str(
                    "; allow mprotect of text or writes to /proc/self/mem, or build with \
                     --cfg immediate_no_patching",
                )
            }
            Refusal::NotSingleThreaded => out.write_str("the process has more than one thread"),
            Refusal::OutsideText { address } => {
                write!(out, "the site at {address:#x} lies outside its module's text")
            }
        }
    }
}

/// Owns the right to change text: there is one in a process, behind one lock.
#[derive(Debug)]
pub struct Patcher {
    limits: Limits,
    segments: Vec<Option<Segment>>,
    /// Where the barrier was prepared; nowhere, or it has failed since.
    barrier_prepared: Option<barrier::Surroundings>,
    memory: Memory,
    protection: Protection,
    stopper: Stopper,
    /// Sites on which a failed barrier left a trap; `new` is what they read. Sorted by address.
    trapping: Vec<Poke>,
}

impl Patcher {
    /// A patcher that knows no text.
    #[must_use]
    pub const fn new() -> Self {
        Patcher {
            limits: Limits {
                protocol: None,
                writer: None,
                one_instant: false,
                stop_signal: None,
                stop_within: None,
            },
            segments: Vec::new(),
            barrier_prepared: None,
            memory: Memory::new(),
            protection: Protection::new(),
            stopper: Stopper::new(),
            trapping: Vec::new(),
        }
    }

    /// Sets what the program allows.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Whether the calling thread is known to be the only one of the process.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        threads::is_alone()
    }

    /// Makes a loaded executable range known; batches may then change sites in it.
    pub fn add_text(&mut self, range: KnownText) -> TextId {
        let id = known::add(range);
        if self.segments.len() <= id.index() {
            self.segments.resize_with(id.index() + 1, || None);
        }
        self.segments[id.index()] = Some(Segment::new(range));
        id
    }

    /// Forgets a range before it is unmapped.
    pub fn remove_text(&mut self, id: TextId) {
        if let Some(segment) = self.segments[id.index()].take() {
            let KnownText { start, end } = segment.range();
            let before = self.trapping.len();
            self.trapping.retain(|poke| !(start..end).contains(&poke.address));
            if self.trapping.len() != before {
                published::publish(&self.trapping);
            }
        }
        known::remove(id);
    }

    /// Tells the handler the sites of a range, as sorted offsets from its start; needed before the
    /// first batch that changes one of them.
    pub fn set_sites(&mut self, id: TextId, sites: Box<[u32]>) {
        known::set_sites(id, sites);
    }

    /// The bytes of code at a site, up to 16 of the `room` that there are, as a thread that runs it
    /// sees them: where a failed barrier left a trap, what the handler does. The first byte is the
    /// lowest of the number.
    ///
    /// # Safety
    ///
    /// `address..address + room` is loaded text.
    #[must_use]
    #[inline]
    pub unsafe fn code(&self, address: usize, room: usize) -> u128 {
        if room < 16 || !self.trapping.is_empty() {
            // SAFETY: by the caller.
            return unsafe { self.code_at_end_or_trap(address, room.min(16)) };
        }
        // SAFETY: readable by the caller; nobody else writes text while we own the patcher.
        u128::from_le(unsafe { (address as *const u128).read_unaligned() })
    }

    /// # Safety
    ///
    /// As for [`Patcher::code`].
    #[cold]
    unsafe fn code_at_end_or_trap(&self, address: usize, room: usize) -> u128 {
        let mut bytes = [0; 16];
        // SAFETY: as in `code`.
        unsafe { (address as *const u8).copy_to_nonoverlapping(bytes.as_mut_ptr(), room) };
        if let Ok(index) = self.trapping.binary_search_by_key(&address, |poke| poke.address) {
            let poke = &self.trapping[index];
            let field = usize::from(poke.field);
            bytes[..field].copy_from_slice(&poke.head[..field]);
            let width = usize::from(poke.width);
            bytes[field..field + width].copy_from_slice(&poke.new.to_le_bytes()[..width]);
        }
        u128::from_le_bytes(bytes)
    }

    /// Carries out a batch by the best protocol that can be used; `commit` is called at the one
    /// instant (or, where there is none, when all sites are new) and must not panic.
    ///
    /// # Errors
    ///
    /// Why it was not carried out. No site has changed and `commit` was not called.
    ///
    /// # Safety
    ///
    /// Every poke was made from the bytes that [`Patcher::code`] gave, of a site that its record
    /// describes, in a text that was added and is loaded.
    pub unsafe fn apply(
        &mut self,
        pokes: &mut Vec<Poke>,
        commit: impl FnOnce(),
    ) -> Result<Outcome, Refusal> {
        // SAFETY: by the caller.
        unsafe { self.descend(None, Tried::default(), pokes, commit) }
    }

    /// Carries out a batch by `only` or, without it, by the best protocol that can be used; goes on
    /// to the next protocol or writer where one turns out not to work.
    ///
    /// # Safety
    ///
    /// As for [`Patcher::apply`]; for [`Protocol::Single`], no other thread runs the sites.
    unsafe fn descend(
        &mut self,
        only: Option<Protocol>,
        mut tried: Tried,
        pokes: &mut Vec<Poke>,
        commit: impl FnOnce(),
    ) -> Result<Outcome, Refusal> {
        let mut commit = Some(commit);
        loop {
            let (protocol, rejected) = match only {
                None => self.choose_from(&tried.protocols)?,
                Some(only) if tried.protocols.is_empty() => (only, Vec::new()),
                Some(_) => return Err(Refusal::NoProtocol(tried.protocols)),
            };
            let commit = || {
                if let Some(commit) = commit.take() {
                    commit();
                }
            };
            // SAFETY: by the caller.
            match unsafe { self.carry_out(protocol, &tried, pokes, commit) } {
                Ok(outcome) => {
                    // SAFETY: by the caller.
                    unsafe { self.repair(protocol) };
                    let trapping = self.trapping.len();
                    return Ok(Outcome { rejected, trapping, ..outcome });
                }
                // Nothing has changed: down the ladder.
                Err(Setback::Protocol(reason)) => {
                    tried.protocols.push(Rejected { protocol, reason });
                }
                Err(Setback::Writer(rejected)) => tried.writers.push(rejected),
                Err(Setback::Final(refusal)) => return Err(refusal),
            }
        }
    }

    /// Takes away the traps that a batch by `protocol` has left, if another protocol can.
    ///
    /// # Safety
    ///
    /// As for [`Patcher::apply`].
    unsafe fn repair(&mut self, protocol: Protocol) {
        if self.trapping.is_empty() || protocol == Protocol::StopWorld {
            return;
        }
        if self.can_use(Protocol::StopWorld, true).is_ok() {
            // SAFETY: by the caller. Where it fails, the sites go on reading through the handler.
            let _ = unsafe {
                self.carry_out(Protocol::StopWorld, &Tried::default(), &mut Vec::new(), || ())
            };
        }
    }

    /// Carries out a batch without any synchronisation, if the process has one thread.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotSingleThreaded`], or why the text cannot be written. Nothing has changed.
    ///
    /// # Safety
    ///
    /// As for [`Patcher::apply`].
    pub unsafe fn apply_early(
        &mut self,
        pokes: &mut Vec<Poke>,
        commit: impl FnOnce(),
    ) -> Result<Outcome, Refusal> {
        if !threads::is_alone() {
            return Err(Refusal::NotSingleThreaded);
        }
        // SAFETY: by the caller.
        unsafe { self.descend(Some(Protocol::Single), Tried::default(), pokes, commit) }
    }

    /// Carries out a batch on text that no thread has run yet: of a module that is being loaded.
    ///
    /// # Errors
    ///
    /// Why the text cannot be written. Nothing has changed.
    ///
    /// # Safety
    ///
    /// As for [`Patcher::apply`], and no thread has run the sites or runs them meanwhile.
    pub unsafe fn apply_unseen(&mut self, pokes: &mut Vec<Poke>) -> Result<(), Refusal> {
        if !self.trapping.is_empty() {
            // Traps that are left stand in text that threads run: not to be taken away unseen.
            // SAFETY: by the caller.
            return unsafe { self.apply(pokes, || ()) }.map(|_| ());
        }
        let unseen = Tried { is_unseen: true, ..Tried::default() };
        // SAFETY: by the caller.
        unsafe { self.descend(Some(Protocol::Single), unseen, pokes, || ()) }?;
        if !threads::is_alone() && self.prepare_barrier().is_ok() {
            // Processors that will run it may hold older bytes of a module that was mapped here.
            let _ = barrier::synchronise();
        }
        Ok(())
    }

    /// How the next batch of `sites` sites would be carried out, and why not better. Each writer and
    /// each text is tried, nothing is changed.
    ///
    /// # Errors
    ///
    /// As [`Patcher::apply`], before anything is tried in earnest.
    pub fn foresee(&mut self, sites: usize) -> Result<Outlook, Refusal> {
        let mut tried = Tried::default();
        loop {
            let (protocol, rejected) = self.choose_from(&tried.protocols)?;
            let (chosen, rejected_writers) = self.writer(protocol, sites, &tried);
            let Some(chosen) = chosen else {
                let reason = without_writer(rejected_writers)?;
                tried.protocols.push(Rejected { protocol, reason });
                continue;
            };
            let writer = chosen.writer();
            if writer == Writer::Mprotect
                && let Err(failure) = text::try_open(&self.segments)
            {
                tried.writers.push(RejectedWriter { writer, reason: Reason::Failed(failure) });
                continue;
            }
            let mut outlook = Outlook { protocol, writer, rejected, rejected_writers };
            self.look_at_other_writers(&mut outlook);
            return Ok(outlook);
        }
    }

    /// Adds why a writer that another batch might take cannot be used.
    fn look_at_other_writers(&mut self, outlook: &mut Outlook) {
        for &writer in Writer::ALL {
            let is_known = outlook.rejected_writers.iter().any(|one| one.writer == writer);
            if is_known || writer == outlook.writer {
                continue;
            }
            let mut result = self.can_write(outlook.protocol, writer, false).map(|_| ());
            if writer == Writer::Mprotect && result.is_ok() {
                result = text::try_open(&self.segments).map_err(Reason::Failed);
            }
            if let Err(reason) = result {
                outlook.rejected_writers.push(RejectedWriter { writer, reason });
            }
        }
    }

    /// Which protocol the next batch would take, and why not the better ones; without those that have
    /// been tried for this batch.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoProtocol`] with every reason.
    fn choose_from(&mut self, tried: &[Rejected]) -> Result<(Protocol, Vec<Rejected>), Refusal> {
        let forced = self.limits.protocol;
        if forced.is_none_or(|only| only == Protocol::Single) && tried.is_empty() {
            if threads::is_alone() {
                return Ok((Protocol::Single, Vec::new()));
            }
            if forced.is_some() {
                let (protocol, reason) = (Protocol::Single, Reason::NotAlone);
                return Err(Refusal::NoProtocol(vec![Rejected { protocol, reason }]));
            }
        }
        let mut rejected = Vec::new();
        for &protocol in Protocol::CHOICES {
            let reason = match tried.iter().find(|tried| tried.protocol == protocol) {
                Some(tried) => tried.reason.clone(),
                None => match self.can_use(protocol, true) {
                    Ok(()) => return Ok((protocol, rejected)),
                    Err(reason) => reason,
                },
            };
            rejected.push(Rejected { protocol, reason });
        }
        // Before giving up, a thread that has blocked SIGTRAP before is waited for once more: it may
        // be about to end.
        let is_blocked = rejected.iter().any(|one| {
            matches!(one.reason, Reason::ThreadBlocksTrap { .. }) && one.protocol == Protocol::Int3
        });
        if is_blocked && self.can_use(Protocol::Int3, false).is_ok() {
            return Ok((Protocol::Int3, Vec::new()));
        }
        Err(Refusal::NoProtocol(rejected))
    }

    fn writer(
        &mut self,
        protocol: Protocol,
        sites: usize,
        tried: &Tried,
    ) -> (Option<Chosen>, Vec<RejectedWriter>) {
        // A protection change costs the other threads a flush; a store through memory costs one
        // call. Where nobody else runs, the protection change is the cheaper one for any number.
        let few = sites <= FEW_SITES && protocol == Protocol::Int3;
        let order = if few {
            [Writer::Procmem, Writer::Mprotect]
        } else {
            [Writer::Mprotect, Writer::Procmem]
        };
        let mut rejected = tried.writers.clone();
        for writer in order {
            if rejected.iter().any(|tried| tried.writer == writer) {
                continue;
            }
            match self.can_write(protocol, writer, tried.is_unseen) {
                Ok(chosen) => return (Some(chosen), rejected),
                Err(reason) => rejected.push(RejectedWriter { writer, reason }),
            }
        }
        (None, rejected)
    }

    fn can_write(
        &mut self,
        protocol: Protocol,
        writer: Writer,
        is_unseen: bool,
    ) -> Result<Chosen, Reason> {
        if self.limits.writer.is_some_and(|only| only != writer) {
            return Err(Reason::NotConfigured);
        }
        match writer {
            // What nobody has run is seen by whoever runs it first.
            Writer::Mprotect if is_unseen => Ok(Chosen::Mprotect),
            Writer::Mprotect => self.protection.prove(&self.segments).map(|()| Chosen::Mprotect),
            // The kernel copies byte by byte, so a word is not stored at once.
            Writer::Procmem if protocol == Protocol::Quadword => Err(Reason::NotOneStore),
            Writer::Procmem => self.memory.prove().map(Chosen::Procmem),
        }
    }

    fn can_use(&mut self, protocol: Protocol, hurry: bool) -> Result<(), Reason> {
        if imp::TRAP.is_empty() {
            return Err(Reason::NoSites);
        }
        let forced = self.limits.protocol;
        if forced.is_some_and(|only| only != protocol) {
            return Err(Reason::NotConfigured);
        }
        if self.limits.one_instant && !protocol.is_one_instant() {
            return Err(Reason::NotOneInstant);
        }
        match protocol {
            Protocol::Int3 => {
                self.prepare_barrier()?;
                if let Some(tracer) = threads::can_all_trap(hurry)?
                    && forced.is_none()
                {
                    return Err(Reason::Traced { tracer });
                }
                trap::look()
            }
            Protocol::Quadword => {
                if forced.is_none() {
                    quadword::is_in_manual().map_err(|vendor| Reason::NotInManual { vendor })?;
                }
                self.prepare_barrier()
            }
            Protocol::StopWorld => stop::look(self.limits.stop_signal),
            Protocol::Single => Ok(()),
        }
    }

    fn prepare_barrier(&mut self) -> Result<(), Reason> {
        // A child of `fork` is a process of its own, which prepares anew; and a filter of system calls
        // that came since may kill who calls.
        let surroundings = Some(barrier::surroundings());
        if self.barrier_prepared != surroundings {
            barrier::prepare().map_err(Reason::Failed)?;
            self.barrier_prepared = surroundings;
        }
        Ok(())
    }

    /// # Safety
    ///
    /// As for [`Patcher::apply`]; for [`Protocol::Single`], no other thread runs the sites.
    unsafe fn carry_out(
        &mut self,
        protocol: Protocol,
        tried: &Tried,
        pokes: &mut Vec<Poke>,
        commit: impl FnOnce(),
    ) -> Result<Outcome, Setback> {
        let sites = pokes.len();
        self.add_trapping(pokes);
        if !pokes.is_sorted_by_key(|poke| poke.address) {
            pokes.sort_by_key(|poke| poke.address);
        }
        let signal = match protocol {
            Protocol::Int3 => trap::install().map(|()| 0),
            Protocol::StopWorld => stop::take_signal(self.limits.stop_signal),
            Protocol::Quadword | Protocol::Single => Ok(0),
        };
        let signal = signal.map_err(Setback::Protocol)?;
        let (chosen, rejected_writers) = self.writer(protocol, pokes.len(), tried);
        let Some(chosen) = chosen else {
            return Err(
                without_writer(rejected_writers).map_or_else(Setback::Final, Setback::Protocol)
            );
        };
        let writer = chosen.writer();
        let spans = text::spans(&self.segments, pokes)
            .map_err(|address| Setback::Final(Refusal::OutsideText { address }))?;
        let refused =
            |failure| Setback::Writer(RejectedWriter { writer, reason: Reason::Failed(failure) });
        let text = match chosen {
            Chosen::Mprotect => text::open(spans).map_err(refused)?,
            Chosen::Procmem(memory) => memory.open(),
        };
        let bound = self.limits.stop_within.unwrap_or(stop::BOUND);
        // SAFETY: each poke lies in the open text, which `spans` has looked at; the rest by the caller.
        // For int3, the handler is installed and `choose_from` has just looked at every thread.
        let end = unsafe {
            match protocol {
                Protocol::Int3 => int3::run(&text, pokes, commit),
                Protocol::Quadword => match quadword::run(&text, pokes, commit) {
                    Ok(()) => End::Complete,
                    Err(cause) => End::Unchanged(cause),
                },
                Protocol::StopWorld => {
                    let stopper = &mut self.stopper;
                    match stop_world::run(stopper, signal, bound, &text, pokes, commit) {
                        Ok(()) => End::Complete,
                        Err(Stop::Store(failure)) => End::Unchanged(Cause::Store(failure)),
                        Err(Stop::NotStopped(reason)) => {
                            let _ = text.close(false);
                            return Err(Setback::Protocol(reason));
                        }
                    }
                }
                Protocol::Single => match single::run(&text, pokes, commit) {
                    Ok(()) => End::Complete,
                    Err(failure) => End::Unchanged(Cause::Store(failure)),
                },
            }
        };
        let left_writable = text.close(true).err();
        let cause = match end {
            End::Complete => {
                self.trapping = Vec::new();
                None
            }
            End::TrapsStayNew => {
                // Both fields new: whatever is published of them again reads new.
                self.trapping = pokes.iter().map(Poke::settled).collect();
                self.barrier_prepared = None;
                None
            }
            End::TrapsStayOld(cause) => {
                let old = |poke: &Poke| Poke { new: poke.old, head: poke.old_head(), ..*poke };
                self.trapping = pokes.iter().map(old).collect();
                Some(cause)
            }
            End::Unchanged(cause) => Some(cause),
        };
        match cause {
            None => Ok(Outcome {
                protocol,
                writer,
                rejected: Vec::new(),
                rejected_writers,
                sites,
                trapping: self.trapping.len(),
                left_writable,
            }),
            Some(Cause::Barrier(failure)) => {
                self.barrier_prepared = None;
                Err(Setback::Protocol(Reason::Failed(failure)))
            }
            Some(Cause::Store(failure)) => Err(refused(failure)),
        }
    }

    /// Adds the sites that an earlier batch left trapping, so that this one repairs them.
    fn add_trapping(&mut self, pokes: &mut Vec<Poke>) {
        if self.trapping.is_empty() {
            return;
        }
        pokes.sort_by_key(|poke| poke.address);
        let left: Vec<Poke> = self
            .trapping
            .iter()
            .filter(|left| pokes.binary_search_by_key(&left.address, |poke| poke.address).is_err())
            .map(|left| Poke { old: left.new, ..*left })
            .collect();
        pokes.extend(left);
    }
}

impl Default for Patcher {
    fn default() -> Self {
        Patcher::new()
    }
}

/// Up to so many sites, `procmem` is the cheaper writer where other threads run: three stores a site
/// against the flush that two protection changes cost.
const FEW_SITES: usize = 4;

/// The writer of a batch, with what it needs.
enum Chosen {
    Mprotect,
    Procmem(OpenMemory),
}

impl Chosen {
    fn writer(&self) -> Writer {
        match self {
            Chosen::Mprotect => Writer::Mprotect,
            Chosen::Procmem(_) => Writer::Procmem,
        }
    }
}

/// What is known of one batch: what has been tried and has failed on the way.
#[derive(Default)]
struct Tried {
    protocols: Vec<Rejected>,
    writers: Vec<RejectedWriter>,
    /// Whether no thread has ever run the sites.
    is_unseen: bool,
}

/// What it means that no writer is left: where one only does not suit the protocol, another protocol
/// may do.
fn without_writer(rejected: Vec<RejectedWriter>) -> Result<Reason, Refusal> {
    if rejected.iter().any(|one| one.reason == Reason::NotOneStore) {
        return Ok(Reason::NoWriter(rejected));
    }
    Err(Refusal::NotWritable(rejected))
}

/// Why an attempt did not change anything.
enum Setback {
    /// The protocol cannot be used; another may.
    Protocol(Reason),
    /// The writer cannot be used; another may.
    Writer(RejectedWriter),
    /// Nothing else can help.
    Final(Refusal),
}
