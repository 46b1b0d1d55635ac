//! The door to the machine room: takes a batch, makes the whole change or none of it.

#![allow(unsafe_code)]

use std::fmt;

use crate::isa::imp;
use crate::known::{self, KnownText, TextId};
use crate::os::text::{self, OpenText, Segment};
use crate::os::threads::Watch;
use crate::os::{Failure, barrier, trap};
use crate::poke::Poke;
use crate::protocol::{Protocol, int3, quadword, single};
use crate::published;
use crate::status::{Outcome, Reason, Rejected, Writer};

/// What a program allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Use this protocol and no other.
    pub protocol: Option<Protocol>,
    /// Use this writer and no other.
    pub writer: Option<Writer>,
    /// Refuse a protocol whose batch is not one instant for all threads.
    pub one_instant: bool,
}

/// Why a batch was not carried out. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// No protocol can be used here.
    NoProtocol(Vec<Rejected>),
    /// The text cannot be made writable.
    NotWritable(Failure),
    /// A processor barrier failed on the way.
    Barrier(Failure),
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
            Refusal::NotWritable(failure) => write!(
                out,
                "the program's text cannot be made writable: {failure}; allow mprotect of text, or \
                 build with --cfg immediate_no_patching"
            ),
            Refusal::Barrier(failure) => write!(
                out,
                "a processor barrier failed: {failure}; nothing has changed, and a later set may \
                 succeed"
            ),
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
    watch: Watch,
    /// The process that has prepared the barrier; 0 if none has, or it has failed since.
    barrier_prepared_in: u32,
    /// Sites on which a failed barrier left a trap; `new` is what they read. Sorted by address.
    trapping: Vec<Poke>,
}

impl Patcher {
    /// A patcher that knows no text.
    #[must_use]
    pub const fn new() -> Self {
        Patcher {
            limits: Limits { protocol: None, writer: None, one_instant: false },
            segments: Vec::new(),
            watch: Watch::new(),
            barrier_prepared_in: 0,
            trapping: Vec::new(),
        }
    }

    /// Sets what the program allows.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// What the program allows.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether the calling thread is known to be the only one of the process.
    pub fn is_alone(&mut self) -> bool {
        self.watch.is_alone()
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

    /// Whether the handler knows the sites of this range.
    #[must_use]
    pub fn has_sites(&self, id: TextId) -> bool {
        known::has_sites(id)
    }

    /// Tells the handler the sites of a range, as sorted offsets from its start; needed before the
    /// first batch that changes one of them.
    pub fn set_sites(&mut self, id: TextId, sites: Box<[u32]>) {
        known::set_sites(id, sites);
    }

    /// The instruction bytes at a site, as a thread that runs it sees them: where a failed barrier
    /// left a trap, what the handler does.
    ///
    /// # Safety
    ///
    /// `address..address + length` is loaded text, and `length` is at most 16.
    #[must_use]
    pub unsafe fn code(&self, address: usize, length: usize) -> [u8; 16] {
        let mut bytes = [0; 16];
        let from = address as *const u8;
        // SAFETY: readable by the caller; nobody else writes text while we own the patcher.
        unsafe { from.copy_to_nonoverlapping(bytes.as_mut_ptr(), length.min(16)) };
        if !self.trapping.is_empty()
            && let Ok(index) = self.trapping.binary_search_by_key(&address, |poke| poke.address)
        {
            let poke = &self.trapping[index];
            let field = usize::from(poke.field);
            bytes[..field].copy_from_slice(&poke.head[..field]);
            let width = usize::from(poke.width);
            bytes[field..field + width].copy_from_slice(&poke.new.to_le_bytes()[..width]);
        }
        bytes
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
        let (protocol, rejected) = self.choose()?;
        // SAFETY: by the caller.
        unsafe { self.carry_out(protocol, rejected, pokes, commit) }
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
        if !self.watch.is_alone() {
            return Err(Refusal::NotSingleThreaded);
        }
        // SAFETY: by the caller.
        unsafe { self.carry_out(Protocol::Single, Vec::new(), pokes, commit) }
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
        // SAFETY: by the caller.
        unsafe { self.carry_out(Protocol::Single, Vec::new(), pokes, || ()) }?;
        if !self.watch.is_alone() {
            // Processors that will run it may hold older bytes of a module that was mapped here.
            let _ = barrier::synchronise();
        }
        Ok(())
    }

    /// Which protocol the next batch would take, and why not the better ones.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoProtocol`] with every reason.
    pub fn choose(&mut self) -> Result<(Protocol, Vec<Rejected>), Refusal> {
        if self.limits.protocol.is_none() && self.watch.is_alone() {
            return Ok((Protocol::Single, Vec::new()));
        }
        if self.limits.protocol == Some(Protocol::Single) {
            return if self.watch.is_alone() {
                Ok((Protocol::Single, Vec::new()))
            } else {
                Err(Refusal::NotSingleThreaded)
            };
        }
        let mut rejected = Vec::new();
        for &protocol in Protocol::CHOICES {
            match self.can_use(protocol) {
                Ok(()) => return Ok((protocol, rejected)),
                Err(reason) => rejected.push(Rejected { protocol, reason }),
            }
        }
        Err(Refusal::NoProtocol(rejected))
    }

    fn can_use(&mut self, protocol: Protocol) -> Result<(), Reason> {
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
        // A child of `fork` is a process of its own, which prepares anew.
        let process = std::process::id();
        if self.barrier_prepared_in != process {
            barrier::prepare().map_err(Reason::Failed)?;
            self.barrier_prepared_in = process;
        }
        match protocol {
            Protocol::Int3 => {
                self.watch.can_all_trap()?;
                trap::look()
            }
            Protocol::Quadword if forced.is_none() => {
                quadword::is_in_manual().map_err(|vendor| Reason::NotInManual { vendor })
            }
            Protocol::Quadword | Protocol::Single => Ok(()),
        }
    }

    /// # Safety
    ///
    /// As for [`Patcher::apply`]; for [`Protocol::Single`], no other thread runs the sites.
    unsafe fn carry_out(
        &mut self,
        protocol: Protocol,
        rejected: Vec<Rejected>,
        pokes: &mut Vec<Poke>,
        commit: impl FnOnce(),
    ) -> Result<Outcome, Refusal> {
        let writer = Writer::Mprotect;
        let asked = pokes.len();
        self.add_trapping(pokes);
        if !pokes.is_sorted_by_key(|poke| poke.address) {
            pokes.sort_by_key(|poke| poke.address);
        }
        let done =
            Outcome { protocol, writer, rejected, sites: asked, trapping: 0, left_writable: None };
        if pokes.is_empty() {
            commit();
            return Ok(done);
        }
        if protocol == Protocol::Int3 {
            trap::install()
                .map_err(|reason| Refusal::NoProtocol(vec![Rejected { protocol, reason }]))?;
        }
        let text = open(&mut self.segments, pokes)?;
        // SAFETY: each poke lies in the open text, looked at in `open`; the rest by the caller. For
        // int3, `choose` has just installed the handler and looked at every thread.
        let end = unsafe {
            match protocol {
                Protocol::Int3 => int3::run(&text, pokes, commit),
                Protocol::Quadword => match quadword::run(&text, pokes, commit) {
                    Ok(()) => int3::End::Complete,
                    Err(failure) => {
                        let _ = text.close();
                        self.barrier_prepared_in = 0;
                        return Err(Refusal::Barrier(failure));
                    }
                },
                Protocol::Single => {
                    single::run(&text, pokes, commit);
                    int3::End::Complete
                }
            }
        };
        let left_writable = text.close().err();
        let (trapping, result) = match end {
            int3::End::Complete => (Vec::new(), Ok(())),
            int3::End::TrapsStayNew => (pokes.clone(), Ok(())),
            int3::End::TrapsStayOld(failure) => {
                let old = pokes.iter().map(|poke| Poke { new: poke.old, ..*poke }).collect();
                (old, Err(Refusal::Barrier(failure)))
            }
        };
        if !trapping.is_empty() {
            self.barrier_prepared_in = 0;
        }
        self.trapping = trapping;
        result.map(|()| Outcome { trapping: self.trapping.len(), left_writable, ..done })
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

/// Opens the segments that `pokes`, sorted by address, lie in.
fn open<'a>(segments: &'a mut [Option<Segment>], pokes: &[Poke]) -> Result<OpenText<'a>, Refusal> {
    let mut touched = vec![false; segments.len()];
    let mut last = 0..0;
    for poke in pokes {
        let end = poke.field_address() + usize::from(poke.width);
        if last.contains(&poke.address) && end <= last.end {
            continue;
        }
        let home = segments.iter().position(|segment| {
            segment.as_ref().is_some_and(|segment| {
                segment.range().start <= poke.address && end <= segment.range().end
            })
        });
        let Some(home) = home else {
            return Err(Refusal::OutsideText { address: poke.address });
        };
        touched[home] = true;
        if let Some(segment) = &segments[home] {
            last = segment.range().start..segment.range().end;
        }
    }
    let homes = segments
        .iter_mut()
        .zip(touched)
        .filter_map(|(segment, touched)| if touched { segment.as_mut() } else { None });
    text::open(homes).map_err(Refusal::NotWritable)
}
