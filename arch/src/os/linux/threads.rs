//! The threads of the process: how many, and whether each of them can take a trap.
//!
//! `int3` in a thread that blocks SIGTRAP kills the process and resets the handler
//! (`force_sig_info_to_task` in the kernel), so a batch that uses traps looks first. Two things can
//! block it: the mask of a thread, read in `/proc/self/task/TID/stat`, and the mask of a handler
//! that is installed for another signal, in force while that handler runs.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use super::{Failure, own_id, stop};
use crate::status::Reason;

/// Descriptors that are kept open between batches, one a thread, to save opening them anew.
const KEPT: usize = 16;
/// The handlers of signals past 31 do not show in `stat`; they are asked for one by one, but not
/// again before this has passed.
const HANDLERS_FRESH: Duration = Duration::from_millis(10);
/// libc blocks all signals for moments, while it creates a thread; a block that lasts longer than
/// `TRIES` times this is meant.
const PAUSE: Duration = Duration::from_micros(100);
const TRIES: usize = 20;
/// How long a thread may stay inside the C library with its signals blocked.
const LIBC_PATIENCE: Duration = Duration::from_secs(2);
/// `PF_IO_WORKER` and `PF_USER_WORKER` of the kernel's `sched.h`: threads of the process that never
/// run user code and block every signal (io_uring's workers).
pub(super) const KERNEL_WORKER: u64 = 0x10 | 0x4000;

/// Looks at the threads of this process, batch after batch.
#[derive(Debug)]
pub struct Watch {
    /// The process that the descriptors belong to: after `fork` they show the parent's threads.
    process: u32,
    directory: Option<File>,
    kept: Vec<(i32, File)>,
    handlers_looked_at: Option<Instant>,
}

/// What `stat` says of one thread.
pub(super) struct Stat {
    pub(super) flags: u64,
    pub(super) state: u8,
    blocked: u64,
    caught: u64,
}

impl Watch {
    /// Has looked at nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Watch { process: 0, directory: None, kept: Vec::new(), handlers_looked_at: None }
    }

    /// The process, as [`is_alone`](Watch::is_alone) last found it.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.process
    }

    fn directory(&mut self) -> io::Result<&File> {
        let process = std::process::id();
        if self.process != process {
            *self = Watch { process, ..Watch::new() };
        }
        if self.directory.is_none() {
            self.directory = Some(File::open("/proc/self/task")?);
        }
        Ok(self.directory.as_ref().expect("opened above"))
    }

    /// Whether the calling thread is the only one of the process.
    ///
    /// `false` also where that cannot be known.
    pub fn is_alone(&mut self) -> bool {
        self.directory().and_then(count).is_ok_and(|count| count == 1)
    }

    /// Looks whether every thread can take a SIGTRAP, now and in every handler.
    ///
    /// # Errors
    ///
    /// The first reason found why not, or why it cannot be known.
    pub fn can_all_trap(&mut self) -> Result<(), Reason> {
        let own = own_id();
        if own_mask() & trap_bit() != 0 {
            return Err(Reason::ThreadBlocksTrap { thread: own });
        }
        let quick = self.look_at_kept(own).map_err(Reason::unreadable)?;
        let caught = match quick {
            Some(caught) => caught,
            None => {
                // Where no other thread's `stat` is read, each signal may have a handler.
                let mut caught = None;
                for thread in self.list().map_err(Reason::unreadable)? {
                    if thread != own {
                        caught = Some(caught.unwrap_or(0) | self.settle(thread)?);
                    }
                }
                caught.unwrap_or(u64::MAX)
            }
        };
        self.can_trap_in_handlers(caught)
    }

    /// The quick look: when the threads with kept descriptors and the caller are as many as the
    /// process has, and all of these still exist, there are no others, and the list need not be
    /// read. Tells what they catch; `None` when it takes the long look.
    ///
    /// The count comes first: a thread that is found to exist later existed when it was made.
    fn look_at_kept(&mut self, own: i32) -> io::Result<Option<u64>> {
        let directory = self.directory()?;
        let count = count(directory)?;
        let others = self.kept.iter().filter(|(thread, _)| *thread != own).count();
        if others == 0 || count != others + 1 {
            return Ok(None);
        }
        let mut caught = 0;
        for (_, file) in self.kept.iter().filter(|(thread, _)| *thread != own) {
            match read_stat(file)? {
                Some(stat) if stat.flags & KERNEL_WORKER != 0 => {}
                Some(stat) if matches!(stat.state, b'Z' | b'X') => return Ok(None),
                Some(stat) if stat.blocked & trap_bit() == 0 => caught |= stat.caught,
                _ => return Ok(None),
            }
        }
        Ok(Some(caught))
    }

    /// Waits until a thread can trap, if it blocks SIGTRAP only for a moment; tells what it
    /// catches.
    fn settle(&mut self, thread: i32) -> Result<u64, Reason> {
        let (mut tries, started) = (0, Instant::now());
        while tries < TRIES {
            match self.stat(thread).map_err(Reason::unreadable)? {
                None => return Ok(0),
                Some(stat) if stat.flags & KERNEL_WORKER != 0 => return Ok(0),
                Some(stat) if matches!(stat.state, b'Z' | b'X') => return Ok(0),
                Some(stat) if stat.blocked & trap_bit() == 0 => return Ok(stat.caught),
                // Only the C library itself can block its own two signals, and it runs no code of
                // the program then: that passes, however long the thread waits for a processor.
                Some(_) if is_within_libc(thread) && started.elapsed() < LIBC_PATIENCE => {}
                Some(_) => tries += 1,
            }
            std::thread::sleep(PAUSE);
        }
        Err(Reason::ThreadBlocksTrap { thread })
    }

    /// The threads that exist now.
    fn list(&mut self) -> io::Result<Vec<i32>> {
        Failure::due("getdents64(/proc/self/task)")?;
        let directory = self.directory()?.as_raw_fd();
        // SAFETY: moves the position of a descriptor that we own.
        unsafe { libc::lseek(directory, 0, libc::SEEK_SET) };
        let mut threads = Vec::new();
        let mut buffer = [0_u64; 512];
        loop {
            // SAFETY: the kernel writes at most the buffer's size into it.
            let filled = unsafe {
                libc::syscall(
                    libc::SYS_getdents64,
                    directory,
                    buffer.as_mut_ptr(),
                    size_of_val(&buffer),
                )
            };
            let Ok(filled) = usize::try_from(filled) else {
                return Err(io::Error::last_os_error());
            };
            if filled == 0 {
                self.kept.retain(|(thread, _)| threads.contains(thread));
                return Ok(threads);
            }
            // SAFETY: the buffer is initialised and outlives the slice; any byte is a valid u8.
            let bytes = unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), filled) };
            threads.extend(entries(bytes).filter_map(|name| name.parse::<i32>().ok()));
        }
    }

    /// What `stat` says of a thread; `None` when it has ended.
    fn stat(&mut self, thread: i32) -> io::Result<Option<Stat>> {
        if let Some((_, file)) = self.kept.iter().find(|(kept, _)| *kept == thread) {
            return read_stat(file);
        }
        let file = match File::open(format!("/proc/self/task/{thread}/stat")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let stat = read_stat(&file)?;
        if self.kept.len() < KEPT {
            self.kept.push((thread, file));
        }
        Ok(stat)
    }

    /// Looks at the masks of the handlers that are installed; `caught` holds the signals up to 31
    /// that have one.
    fn can_trap_in_handlers(&mut self, caught: u64) -> Result<(), Reason> {
        let fresh = self.handlers_looked_at.is_some_and(|at| at.elapsed() < HANDLERS_FRESH);
        for signal in 1..=libc::SIGRTMAX() {
            let skip = if signal < 32 { caught & bit(signal) == 0 } else { fresh };
            if !skip && signal != libc::SIGTRAP && handler_blocks_trap(signal) {
                return Err(Reason::HandlerBlocksTrap { signal });
            }
        }
        if !fresh {
            self.handlers_looked_at = Some(Instant::now());
        }
        Ok(())
    }
}

impl Default for Watch {
    fn default() -> Self {
        Watch::new()
    }
}

/// How many threads the process has: the kernel counts them in the links of `/proc/self/task`
/// (`proc_task_getattr`), two and one a thread. `fstat` asks for no more than that.
fn count(directory: &File) -> io::Result<usize> {
    Failure::due("fstat(/proc/self/task)")?;
    let mut stat = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: a descriptor that is open, and memory that we own.
    if unsafe { libc::fstat(directory.as_raw_fd(), stat.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: written by the call that succeeded.
    let links = unsafe { stat.assume_init() }.st_nlink;
    Ok(usize::try_from(links).unwrap_or(0).saturating_sub(2))
}

/// What an open `stat` says; `None` when its thread has ended.
fn read_stat(file: &File) -> io::Result<Option<Stat>> {
    Failure::due("read(/proc/self/task/stat)")?;
    let mut buffer = [0; 1024];
    let length = match file.read_at(&mut buffer, 0) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => 0,
        other => other?,
    };
    if length == 0 {
        return Ok(None);
    }
    parse_stat(&buffer[..length])
        .map(Some)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unexpected /proc stat"))
}

/// Whether a thread blocks the two signals that are the C library's own (`nptl(7)`), which
/// `pthread_sigmask` never does. `stat` shows the first 31 signals, `status` all.
fn is_within_libc(thread: i32) -> bool {
    let own = bit(32) | bit(33);
    std::fs::read(format!("/proc/self/task/{thread}/status"))
        .ok()
        .and_then(|text| parse_blocked(&text))
        .is_some_and(|blocked| blocked & own == own)
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

fn trap_bit() -> u64 {
    bit(libc::SIGTRAP)
}

fn own_mask() -> u64 {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: reads the mask into a set that we own; a zeroed set is valid.
    let set = unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), set.as_mut_ptr());
        set.assume_init()
    };
    // SAFETY: reads the set.
    if unsafe { libc::sigismember(&raw const set, libc::SIGTRAP) } == 1 { trap_bit() } else { 0 }
}

fn handler_blocks_trap(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks for an action into memory that we own.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    if asked != 0 {
        return false;
    }
    // SAFETY: written by the call that succeeded.
    let action = unsafe { action.assume_init() };
    action.sa_sigaction != libc::SIG_DFL
        && action.sa_sigaction != libc::SIG_IGN
        // Ours contains no site.
        && action.sa_sigaction != stop::handler()
        // SAFETY: reads the set.
        && unsafe { libc::sigismember(&raw const action.sa_mask, libc::SIGTRAP) } == 1
}

/// The names in a buffer of `struct linux_dirent64` (`getdents(2)`): two words, a 16-bit length of
/// the entry, a type byte, a name that ends with a zero.
pub(super) fn entries(bytes: &[u8]) -> impl Iterator<Item = &str> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(rest.get(16..18)?.try_into().ok()?));
        let entry = rest.get(..length)?;
        rest = rest.get(length..)?;
        let name = entry.get(19..)?.split(|byte| *byte == 0).next()?;
        std::str::from_utf8(name).ok()
    })
}

/// Fields of `proc(5)` `stat` by their number there; the second, the name, ends with the last
/// parenthesis.
pub(super) fn parse_stat(text: &[u8]) -> Option<Stat> {
    let name_end = text.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&text[name_end + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?; // field 3
    let flags = fields.nth(5)?.parse().ok()?; // 9
    let blocked = fields.nth(22)?.parse().ok()?; // 32
    let caught = fields.nth(1)?.parse().ok()?; // 34
    Some(Stat { flags, state, blocked, caught })
}

/// The line `SigBlk:` of `proc(5)` `status`: the blocked signals, as hexadecimal digits.
pub(super) fn parse_blocked(text: &[u8]) -> Option<u64> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let digits = lines.find_map(|line| line.strip_prefix(b"SigBlk:"))?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_by_field_number() {
        let text = b"42 (a) name) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 100 200 300 \
            400 1 1 0 0 0 0 16 4096 1073746124 0 0 0 17 1";
        let stat = parse_stat(text).expect("well formed");
        assert_eq!((stat.state, stat.flags), (b'S', 4_194_560));
        assert_eq!((stat.blocked, stat.caught), (16, 1_073_746_124));
        assert!(parse_stat(b"42 (short) S 1 2").is_none());
    }

    #[test]
    fn blocked_signals_are_read() {
        let text = b"Name:\tx\nSigPnd:\t0000\nSigBlk:\tfffffffe7ffbfeff\nSigIgn:\t00\n";
        assert_eq!(parse_blocked(text), Some(0xffff_fffe_7ffb_feff));
        assert_eq!(parse_blocked(b"SigIgn:\t00"), None);
    }

    #[test]
    fn sees_a_thread_and_its_mask() {
        let mut watch = Watch::new();
        let (told, hear) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            // SAFETY: blocks a signal in this thread alone.
            unsafe {
                let mut set = std::mem::zeroed();
                libc::sigaddset(&raw mut set, libc::SIGTRAP);
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            }
            told.send(own_id()).expect("the test listens");
            let _ = stopped.recv();
        });
        let thread_id = hear.recv().expect("the thread tells its id");
        assert!(!watch.is_alone());
        assert_eq!(
            watch.can_all_trap(),
            Err(Reason::ThreadBlocksTrap { thread: thread_id })
        );
        drop(stop);
        thread.join().expect("the thread ends");
    }
}
