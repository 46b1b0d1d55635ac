//! Stopping the world: every other thread of the process waits in a signal handler.
//!
//! # Steps
//!
//! 1. The round becomes odd: a stop is under way.
//! 2. List the threads. Each one that is new is given a place in the table, then, as soon as it does
//!    not block it, the signal.
//! 3. Wait until everyone who was asked has arrived or has ended. When a listing that was made after
//!    that finds nobody new, the world has stopped: those who wait create no thread.
//! 4. The owner changes the text.
//! 5. The round becomes even, and all are woken. On its way out of the handler each thread executes a
//!    serialising instruction, so that it runs the new text.
//!
//! A thread that does not arrive (it blocks the signal, or waits in the kernel where no signal reaches
//! it) may be waiting for one that has: the round becomes even after a few milliseconds, all run on for
//! a while, and another begins. When the bound has passed the stop fails, and nothing has changed.
//!
//! # What the owner may not do between steps 2 and 5
//!
//! Allocate, or take any lock: a stopped thread may hold it. The listing therefore reads into
//! buffers that exist before, and system calls are made directly.
//!
//! # What the handler may do
//!
//! Read the round and the table, mark its own place, wait on the round. No allocation, no lock, no
//! thread-local; `errno` is put back.
//!
//! # Invariants
//!
//! * `S1` Only the owner of the [`Patcher`](crate::Patcher) starts a round, one at a time.
//! * `S2` The table is never freed, and grows only while no round is under way: a handler that comes
//!   late finds a table that is at least as long as the one it was asked from.
//! * `S3` A place is given to another thread only when nobody waits in the handler any more.

#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::task::Directory;
use super::{Failure, action_of, emulator, own_id};
use crate::status::Reason;

/// Odd while the world is stopping or stopped. What the stopped wait on.
static ROUND: AtomicU32 = AtomicU32::new(0);
static TABLE: AtomicPtr<Place> = AtomicPtr::new(ptr::null_mut());
static ASKED: AtomicUsize = AtomicUsize::new(0);
/// The signal that stops; 0 while none has been taken.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// One thread of a round.
struct Place {
    thread: AtomicI32,
    /// The round in which the thread waits in the handler; 0 while it does not.
    arrived: AtomicU32,
    /// Whether the signal was sent in this round; the owner's alone.
    is_sent: AtomicBool,
}

/// Stops the world, again and again.
#[derive(Debug)]
pub struct Stopper {
    capacity: usize,
    listing: Vec<u64>,
}

/// The world, stopped, until this is dropped.
#[derive(Debug)]
pub struct Stopped(());

/// How long a stop may take unless the configuration says otherwise.
pub const BOUND: Duration = Duration::from_secs(1);
/// libc blocks all signals for moments, while it creates a thread, and so does the kernel while a
/// thread is on its way out of our handler; a block that lasts longer is meant. Long, because a thread
/// may wait for a processor in that moment.
const PATIENCE: Duration = Duration::from_secs(1);
/// As long as a thread is waited for that has been waited for in vain before.
const KNOWN_PATIENCE: Duration = Duration::from_millis(20);
/// The thread that was last found to block the signal, and has not been seen without since.
static BLOCKED_BEFORE: AtomicI32 = AtomicI32::new(0);
/// How long the first round holds those who have arrived; each further one twice as long.
const FIRST_HOLD: Duration = Duration::from_millis(10);
/// How long they run on between two rounds.
const RUN: Duration = Duration::from_millis(1);
/// Between two looks at those who have not arrived.
const LOOK: Duration = Duration::from_micros(20);

extern "C" fn park(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: `errno` of this thread; the calls below may write it.
    let errno = unsafe { *libc::__errno_location() };
    let round = ROUND.load(Ordering::Acquire);
    if round % 2 == 1 {
        let mut own = None;
        while ROUND.load(Ordering::Acquire) == round {
            if own.is_none() {
                // A signal of an earlier round that failed may bring a thread here before it is asked
                // in this one: it looks again until it has a place.
                // A place that was given to another since is not ours to mark.
                own = place_of(own_id()).filter(|place| {
                    let (order, else_order) = (Ordering::AcqRel, Ordering::Relaxed);
                    place.arrived.compare_exchange(0, round, order, else_order).is_ok()
                });
            }
            futex(libc::FUTEX_WAIT, round, own.is_none().then_some(LOOK));
        }
        serialise();
        if let Some(place) = own {
            let (order, else_order) = (Ordering::AcqRel, Ordering::Relaxed);
            let _ = place.arrived.compare_exchange(round, 0, order, else_order);
        }
    }
    serialise();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

fn futex(operation: libc::c_int, value: u32, time: Option<Duration>) {
    let time = time.map(timespec);
    // SAFETY: waits on or wakes at a static word; the time outlives the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            ROUND.as_ptr(),
            operation | libc::FUTEX_PRIVATE_FLAG,
            value,
            time.as_ref().map_or(ptr::null(), ptr::from_ref),
        );
    }
}

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos() as _ }
}

/// Executes an instruction after which this processor has forgotten what it fetched before.
fn serialise() {
    cfg_select! {
        target_arch = "x86_64" => {
            // CPUID serialises (Intel SDM volume 3A, section 9.3).
            std::hint::black_box(std::arch::x86_64::__cpuid(0));
        }
        any(target_arch = "powerpc", target_arch = "powerpc64") => {
            // SAFETY: touches nothing (Power ISA book II, section 4.6.1).
            unsafe { std::arch::asm!("isync") };
        }
        target_arch = "x86" => {
            std::hint::black_box(std::arch::x86::__cpuid(0));
        }
        _ => {}
    }
}

/// Makes sure that a signal is ours to stop with; `wanted` is what the configuration asks for.
///
/// # Errors
///
/// [`Reason::NoSignal`] when the wanted signal, or every real-time signal, is handled by the
/// program.
pub fn take_signal(wanted: Option<i32>) -> Result<i32, Reason> {
    let call = "sigaction(real-time signal)";
    loop {
        let signal = find_signal(wanted)?;
        if handler_of(signal) == Some(handler()) {
            return Ok(signal);
        }
        // SAFETY: a zeroed action is valid; the fields that matter are set.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler();
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // No handler of the program, with a site in it, runs on top of ours while the text changes.
        action.sa_mask = super::mask::every();
        // SAFETY: as above.
        let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: `park` is async-signal-safe by the rules above.
        if unsafe { libc::sigaction(signal, &raw const action, &raw mut before) } != 0 {
            return Err(Reason::Failed(Failure::last(call)));
        }
        if before.sa_sigaction == libc::SIG_DFL {
            SIGNAL.store(signal, Ordering::Relaxed);
            return Ok(signal);
        }
        // The program has just taken it: it is given back, and another is looked for.
        // SAFETY: the action that was there.
        if unsafe { libc::sigaction(signal, &raw const before, ptr::null_mut()) } != 0 {
            return Err(Reason::Failed(Failure::last(call)));
        }
    }
}

/// The signal that is ours already and still is, or one that nobody handles.
fn find_signal(wanted: Option<i32>) -> Result<i32, Reason> {
    let held = SIGNAL.load(Ordering::Relaxed);
    if held != 0 && handler_of(held) == Some(handler()) && wanted.is_none_or(|one| one == held) {
        return Ok(held);
    }
    // The highest is left to tools: valgrind keeps it for itself.
    let mut candidates = match wanted {
        Some(one) => one..=one,
        None => libc::SIGRTMIN()..=libc::SIGRTMAX() - 1,
    }
    .rev();
    let free = candidates.find(|signal| handler_of(*signal) == Some(libc::SIG_DFL));
    free.ok_or(Reason::NoSignal { wanted })
}

/// Whether the world could be stopped now, as far as that shows without stopping it.
///
/// # Errors
///
/// As [`take_signal`], and [`Reason::ThreadBlocksStop`].
pub fn look(wanted: Option<i32>) -> Result<(), Reason> {
    let signal = find_signal(wanted)?;
    let directory = Directory::open()?;
    let threads = directory.all()?;
    let began = Instant::now();
    let own = own_id();
    for thread in threads.into_iter().filter(|thread| *thread != own) {
        while matches!(look_at(&directory, thread, signal), Asking::Later) {
            if began.elapsed() > patience(thread) {
                BLOCKED_BEFORE.store(thread, Ordering::Relaxed);
                return Err(Reason::ThreadBlocksStop { thread, signal });
            }
            pause();
        }
        let _ = BLOCKED_BEFORE.compare_exchange(thread, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
    Ok(())
}

/// How long a thread that blocks the signal is waited for.
fn patience(thread: i32) -> Duration {
    let is_known = BLOCKED_BEFORE.load(Ordering::Relaxed) == thread;
    if is_known { KNOWN_PATIENCE } else { PATIENCE }
}

/// The address of the handler.
pub(super) fn handler() -> usize {
    park as extern "C" fn(_, _, _) as usize
}

fn handler_of(signal: i32) -> Option<usize> {
    action_of(signal).ok().map(|action| action.sa_sigaction)
}

/// What keeps a stop from being complete.
enum Missing {
    Nobody,
    /// The table is full.
    Room,
    /// This thread blocks the signal, and not only for a moment.
    Blocks(i32),
    /// This thread has not arrived.
    Thread(i32),
    /// Threads end all the time, so that no listing is known to be whole.
    Listing,
}

impl Stopper {
    /// Has stopped nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Stopper { capacity: 0, listing: Vec::new() }
    }

    /// Stops every other thread of the process. The caller owns the patcher.
    ///
    /// # Errors
    ///
    /// Why the world could not be stopped; it runs on.
    pub fn stop(&mut self, signal: i32, bound: Duration) -> Result<Stopped, Reason> {
        let directory = Directory::open()?;
        emulator::is_there(); // Known before nothing may be allocated.
        let began = Instant::now();
        let deadline = began + bound;
        let mut hold = FIRST_HOLD;
        self.grow(64);
        loop {
            // Places are given anew only when nobody of an earlier round holds one.
            while let Some(place) = asked().find(|place| place.arrived.load(Ordering::Acquire) != 0) {
                let thread = place.thread.load(Ordering::Relaxed);
                if !directory.is_alive(thread) {
                    place.arrived.store(0, Ordering::Relaxed);
                } else if Instant::now() > deadline {
                    return Err(Reason::ThreadNotStopped { thread });
                } else {
                    pause();
                }
            }
            // 1.
            ASKED.store(0, Ordering::Release);
            let round = ROUND.load(Ordering::Relaxed).wrapping_add(1);
            ROUND.store(round, Ordering::SeqCst);
            let stopped = Stopped(());
            let until = deadline.min(Instant::now() + hold);
            let reason = match self.gather(&directory, signal, round, until) {
                Ok(Missing::Nobody) => return Ok(stopped),
                Ok(Missing::Room) => {
                    drop(stopped);
                    self.grow(self.capacity * 2);
                    continue;
                }
                Ok(Missing::Blocks(thread)) => Reason::ThreadBlocksStop { thread, signal },
                Ok(Missing::Thread(thread)) => Reason::ThreadNotStopped { thread },
                Ok(Missing::Listing) => Reason::ThreadsUnknown { errno: libc::EAGAIN },
                Err(failure) => Reason::Failed(failure),
            };
            drop(stopped);
            let mut is_over = Instant::now() >= deadline;
            if let Reason::ThreadBlocksStop { thread, .. } = reason {
                is_over |= began.elapsed() > patience(thread);
                if is_over {
                    BLOCKED_BEFORE.store(thread, Ordering::Relaxed);
                }
            }
            if is_over || matches!(reason, Reason::Failed(_)) {
                return Err(reason);
            }
            // Who is missing may wait for one who was held: all run on for a while.
            hold *= 2;
            std::thread::sleep(RUN);
        }
    }

    fn grow(&mut self, capacity: usize) {
        if capacity <= self.capacity {
            return;
        }
        let table: Vec<Place> = (0..capacity)
            .map(|_| Place {
                thread: AtomicI32::new(0),
                arrived: AtomicU32::new(0),
                is_sent: AtomicBool::new(false),
            })
            .collect();
        TABLE.store(table.leak().as_mut_ptr(), Ordering::Release);
        self.capacity = capacity;
        self.listing = vec![0; 4096];
    }

    /// Steps 2 and 3. Allocates nothing.
    fn gather(
        &mut self,
        directory: &Directory,
        signal: i32,
        round: u32,
        until: Instant,
    ) -> Result<Missing, Failure> {
        loop {
            // Whoever had arrived before this listing creates no thread that it could miss.
            let waiting = first_missing(directory, round);
            // 2.
            let (mut newcomer, mut blocks, mut full, mut unsent) = (None, None, false, None);
            let (mut listed, mut has_one_ended) = (0, false);
            let own = own_id();
            let count = directory.count();
            directory.list(&mut self.listing, |thread| {
                listed += 1;
                if thread == own || full {
                    return;
                }
                let known = place_of(thread);
                if known.is_some_and(|place| place.is_sent.load(Ordering::Relaxed)) {
                    return;
                }
                let asking = look_at(directory, thread, signal);
                match asking {
                    Asking::Leave => return,
                    Asking::Ended => {
                        has_one_ended = true;
                        return;
                    }
                    Asking::Later | Asking::Now => {}
                }
                let place = known.or_else(|| {
                    newcomer = Some(thread);
                    give_place(thread, self.capacity)
                });
                let Some(place) = place else {
                    full = true;
                    return;
                };
                if matches!(asking, Asking::Now) {
                    unsent = unsent.or(send(place, signal).err());
                } else if place.arrived.load(Ordering::Acquire) != round {
                    // A thread that blocks the signal because it is in our handler arrives.
                    blocks = Some(thread);
                }
            })?;
            if full {
                return Ok(Missing::Room);
            }
            // 3.
            // The kernel goes on with a listing by counting: where one has ended meanwhile, another
            // may be left out.
            let is_whole = !has_one_ended
                && [count, directory.count()].iter().flatten().all(|count| *count == listed);
            let is_late = Instant::now() > until;
            if let Some(thread) = blocks
                && is_late
            {
                return Ok(Missing::Blocks(thread));
            }
            match (waiting, newcomer) {
                (None, None) if is_whole => return Ok(Missing::Nobody),
                (None, None) if is_late => return Ok(Missing::Listing),
                (Some(_), _) | (_, Some(_)) if is_late && unsent.is_some() => {
                    return unsent.map_or(Ok(Missing::Listing), Err);
                }
                (Some(thread), _) | (None, Some(thread)) if is_late => {
                    return Ok(Missing::Thread(thread));
                }
                _ => pause(),
            }
        }
    }
}

impl Default for Stopper {
    fn default() -> Self {
        Stopper::new()
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // 5.
        let round = ROUND.load(Ordering::Relaxed).wrapping_add(1);
        ROUND.store(round, Ordering::SeqCst);
        futex(libc::FUTEX_WAKE, i32::MAX.cast_unsigned(), None);
        serialise();
    }
}

/// The places of this round.
fn asked() -> impl Iterator<Item = &'static Place> {
    let count = ASKED.load(Ordering::Acquire);
    let table = TABLE.load(Ordering::Acquire);
    // SAFETY: S2.
    (0..count).map(move |index| unsafe { &*table.add(index) })
}

fn place_of(thread: i32) -> Option<&'static Place> {
    asked().find(|place| place.thread.load(Ordering::Relaxed) == thread)
}

/// Somebody who was asked, has not arrived and has not ended.
fn first_missing(directory: &Directory, round: u32) -> Option<i32> {
    asked().find_map(|place| {
        let thread = place.thread.load(Ordering::Relaxed);
        let missing = place.arrived.load(Ordering::Acquire) != round && directory.is_alive(thread);
        missing.then_some(thread)
    })
}

/// Gives the thread a place, if one is left.
fn give_place(thread: i32, capacity: usize) -> Option<&'static Place> {
    let count = ASKED.load(Ordering::Relaxed);
    if count == capacity {
        return None;
    }
    // SAFETY: S2; `count` is below the capacity.
    let place = unsafe { &*TABLE.load(Ordering::Relaxed).add(count) };
    place.thread.store(thread, Ordering::Relaxed);
    place.arrived.store(0, Ordering::Relaxed);
    place.is_sent.store(false, Ordering::Relaxed);
    ASKED.store(count + 1, Ordering::Release);
    Some(place)
}

/// Sends the signal. Where that fails for want of memory or by `RLIMIT_SIGPENDING`, it may succeed
/// later; a thread that has ended shows in the next listing.
fn send(place: &Place, signal: i32) -> Result<(), Failure> {
    let call = "tgkill(real-time signal)";
    Failure::due(call)?;
    let thread = place.thread.load(Ordering::Relaxed);
    // SAFETY: sends a signal to a thread of this process, which has our handler for it.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) };
    if sent != 0 {
        let failure = Failure::last(call);
        return if failure.errno == libc::ESRCH { Ok(()) } else { Err(failure) };
    }
    place.is_sent.store(true, Ordering::Relaxed);
    Ok(())
}

fn pause() {
    let time = timespec(LOOK);
    // SAFETY: sleeps; the time outlives the call.
    unsafe { libc::nanosleep(&raw const time, ptr::null_mut()) };
}

/// What to do about a thread that has not been asked.
enum Asking {
    /// It never runs user code any more, and stays.
    Leave,
    /// It has ended, now or a moment ago.
    Ended,
    /// It blocks the signal, perhaps for a moment, or that is not known.
    Later,
    Now,
}

/// Whether to send the signal to a thread. One that blocks it is not asked, nor one that waits for it
/// in `sigwait`, which would be given ours.
fn look_at(directory: &Directory, thread: i32, signal: i32) -> Asking {
    if emulator::owns(directory, thread) {
        return Asking::Leave;
    }
    match directory.stat(thread) {
        Ok(None) => return Asking::Ended,
        // The first thread stays in the listing when it has ended before the others.
        Ok(Some(stat)) if stat.has_ended() && thread == std::process::id().cast_signed() => {
            return Asking::Leave;
        }
        Ok(Some(stat)) if stat.has_ended() => return Asking::Ended,
        Ok(Some(stat)) if stat.is_kernels() => return Asking::Leave,
        Ok(Some(_)) | Err(_) => {}
    }
    match directory.status(thread) {
        Ok(Some(status)) if status.blocked & (1 << (signal - 1)) == 0 => {
            let waits = status.state == b'S' && directory.waits_for(thread, signal);
            if waits { Asking::Later } else { Asking::Now }
        }
        _ => Asking::Later,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_runs_while_the_world_is_stopped() {
        static COUNTS: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];
        static DONE: AtomicBool = AtomicBool::new(false);
        let signal = take_signal(None).expect("a real-time signal is free");
        let mut stopper = Stopper::new();
        std::thread::scope(|scope| {
            for count in &COUNTS {
                scope.spawn(|| {
                    while !DONE.load(Ordering::Relaxed) {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let mut rounds = 0;
            for _ in 0..200 {
                // Other tests' threads may block signals for a while; the bound then ends a round.
                let Ok(stopped) = stopper.stop(signal, BOUND) else { continue };
                let before: [usize; 4] = std::array::from_fn(|n| COUNTS[n].load(Ordering::Relaxed));
                pause();
                let after: [usize; 4] = std::array::from_fn(|n| COUNTS[n].load(Ordering::Relaxed));
                drop(stopped);
                assert_eq!(before, after);
                rounds += 1;
            }
            DONE.store(true, Ordering::Relaxed);
            assert!(rounds > 0);
        });
    }
}
