//! `/proc/self/task`: the threads of the process, read without allocating.

#![allow(unsafe_code)]

use std::os::fd::RawFd;

use super::{Failure, own_id};
use crate::status::Reason;

/// `PF_IO_WORKER` and `PF_USER_WORKER` of the kernel's `sched.h`. Older kernels use the same bits for
/// something else (a virtual processor that runs its guest), so the mask decides as well.
const KERNEL_WORKER: u64 = 0x10 | 0x4000;
/// All of the first 31 signals but SIGKILL and SIGSTOP, which nobody can block.
const ALL_BLOCKED: u64 = 0x7fff_ffff & !(1 << (libc::SIGKILL - 1)) & !(1 << (libc::SIGSTOP - 1));

/// What `stat` says of one thread.
pub(super) struct Stat {
    flags: u64,
    pub(super) state: u8,
    /// The first 31 signals.
    pub(super) blocked: u64,
}

impl Stat {
    /// Whether it has ended and only waits to be forgotten.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    /// Whether it belongs to the kernel and never runs user code (io_uring's workers).
    pub(super) fn is_kernels(&self) -> bool {
        self.flags & KERNEL_WORKER != 0 && self.blocked & ALL_BLOCKED == ALL_BLOCKED
    }
}

/// What `status` says of one thread's signals.
pub(super) struct Status {
    pub(super) state: u8,
    pub(super) blocked: u64,
    /// Those that have a handler, in the whole process.
    pub(super) caught: u64,
    /// The process that traces it; 0 if none does.
    pub(super) tracer: i32,
}

/// What a file of a thread tells: nothing when the thread has ended, and a failure when that is not
/// known.
type Told<T> = Result<Option<T>, Failure>;

/// A failure that means that the thread has ended, as that; any other as it is.
fn unless_ended<T>(failure: Failure) -> Told<T> {
    if matches!(failure.errno, libc::ENOENT | libc::ESRCH) { Ok(None) } else { Err(failure) }
}

/// `/proc/self/task`, read without allocating.
pub(super) struct Directory(RawFd);

impl Directory {
    pub(super) fn open() -> Result<Self, Reason> {
        Failure::due("open(/proc/self/task)").map_err(Reason::Failed)?;
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: a path that ends with a zero.
        let directory = unsafe { libc::open(c"/proc/self/task".as_ptr(), flags) };
        if directory < 0 {
            return Err(Reason::unreadable(std::io::Error::last_os_error()));
        }
        Ok(Directory(directory))
    }

    pub(super) fn list(&self, buffer: &mut [u64], mut each: impl FnMut(i32)) -> Result<(), Failure> {
        Failure::due("getdents64(/proc/self/task)")?;
        // SAFETY: moves the position of a descriptor that we own.
        unsafe { libc::lseek(self.0, 0, libc::SEEK_SET) };
        loop {
            // SAFETY: the kernel writes at most the buffer's size into it.
            let filled = unsafe {
                libc::syscall(
                    libc::SYS_getdents64,
                    self.0,
                    buffer.as_mut_ptr(),
                    size_of_val(buffer),
                )
            };
            match usize::try_from(filled) {
                Err(_) => return Err(Failure::last("getdents64(/proc/self/task)")),
                Ok(0) => return Ok(()),
                Ok(filled) => {
                    // SAFETY: the buffer is initialised and outlives the slice.
                    let bytes =
                        unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), filled) };
                    entries(bytes).filter_map(|name| name.parse().ok()).for_each(&mut each);
                }
            }
        }
    }

    /// The threads, each of which was there before and after the listing.
    ///
    /// A listing that somebody ends in may leave out another: the kernel goes on by counting.
    pub(super) fn all(&self) -> Result<Vec<i32>, Reason> {
        let own = own_id();
        for _ in 0..LISTINGS {
            let mut threads = Vec::new();
            self.list(&mut [0; 512], |thread| threads.push(thread)).map_err(Reason::Failed)?;
            if !threads.contains(&own) {
                // Numbers of another process namespace.
                return Err(Reason::ThreadsUnknown { errno: libc::ESRCH });
            }
            if threads.iter().all(|thread| exists(*thread)) {
                return Ok(threads);
            }
        }
        Err(Reason::ThreadsUnknown { errno: libc::EAGAIN })
    }

    /// How many threads there are, by the links of the directory (`proc_task_getattr`).
    pub(super) fn count(&self) -> Option<usize> {
        // SAFETY: a zeroed `stat` is valid; the kernel writes into memory that we own.
        let links = unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            (libc::fstat(self.0, &raw mut stat) == 0).then_some(stat.st_nlink as usize)
        };
        links?.checked_sub(2).filter(|count| *count > 0)
    }

    /// Opens a file of a thread.
    fn open_file(&self, thread: i32, name: &[u8], call: &'static str) -> Told<File> {
        Failure::due(call)?;
        let mut path = [0_u8; 24];
        let end = write_number(&mut path, thread);
        path[end..end + name.len()].copy_from_slice(name);
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        // SAFETY: the path ends with a zero.
        let file = unsafe { libc::openat(self.0, path.as_ptr().cast(), flags) };
        if file >= 0 { Ok(Some(File(file, call))) } else { unless_ended(Failure::last(call)) }
    }

    /// What a thread's `stat` says.
    pub(super) fn stat(&self, thread: i32) -> Told<Stat> {
        let call = "read(/proc/self/task/TID/stat)";
        let Some(file) = self.open_file(thread, b"/stat", call)? else { return Ok(None) };
        let mut buffer = [0; 1024];
        let length = match file.read(&mut buffer) {
            Ok(length) => length,
            Err(failure) => return unless_ended(failure),
        };
        let unknown = Failure { call, errno: libc::EINVAL };
        parse_stat(&buffer[..length]).map(Some).ok_or(unknown)
    }

    /// What a thread's `status` says.
    pub(super) fn status(&self, thread: i32) -> Told<Status> {
        let call = "read(/proc/self/task/TID/status)";
        let Some(file) = self.open_file(thread, b"/status", call)? else { return Ok(None) };
        match parse_status(|buffer| file.read(buffer)) {
            Ok(status) => status.map(Some).ok_or(Failure { call, errno: libc::EINVAL }),
            Err(failure) => unless_ended(failure),
        }
    }

    /// Whether the thread may run user code.
    pub(super) fn is_alive(&self, thread: i32) -> bool {
        match self.stat(thread) {
            Ok(Some(stat)) => !stat.has_ended() && !stat.is_kernels(),
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Whether the thread waits for `signal` in `sigwait` or one of its kin. It blocks the signal
    /// then, although its mask does not say so: the kernel opens for the time of the call what the
    /// call waits for.
    pub(super) fn waits_for(&self, thread: i32, signal: i32) -> bool {
        let call = "read(/proc/self/task/TID/syscall)";
        let Ok(Some(file)) = self.open_file(thread, b"/syscall", call) else { return false };
        let mut buffer = [0; 256];
        let length = file.read(&mut buffer).unwrap_or(0);
        let Some(set) = parse_wait(&buffer[..length]) else { return false };
        // Where the set cannot be read, it may hold the signal.
        read_own_memory(set).is_none_or(|words| {
            let (word, bit) = ((signal - 1) / WORD_BITS, (signal - 1) % WORD_BITS);
            words[word as usize] >> bit & 1 == 1
        })
    }
}

/// Listings that somebody may end in.
const LISTINGS: usize = 64;

fn exists(thread: i32) -> bool {
    // SAFETY: sends no signal, only looks whether it could.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, 0) == 0 }
}

const WORD_BITS: i32 = libc::c_ulong::BITS as i32;
/// The kernel's set of 64 signals.
type KernelSet = [libc::c_ulong; 64 / WORD_BITS as usize];

/// Reads a set of signals at an address that another thread named and may have unmapped.
fn read_own_memory(address: usize) -> Option<KernelSet> {
    let mut set: KernelSet = [0; 64 / WORD_BITS as usize];
    let size = size_of_val(&set);
    let into = libc::iovec { iov_base: set.as_mut_ptr().cast(), iov_len: size };
    let from = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: size };
    // SAFETY: the kernel writes into the set, which has that size, and looks whether the address can
    // be read.
    let read = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const into, 1, &raw const from, 1, 0)
    };
    (usize::try_from(read) == Ok(size)).then_some(set)
}

impl Drop for Directory {
    fn drop(&mut self) {
        // SAFETY: closes a descriptor that we own.
        unsafe { libc::close(self.0) };
    }
}

/// An open file, and what its failures are called.
struct File(RawFd, &'static str);

impl File {
    /// How many bytes were read; none at the end.
    fn read(&self, buffer: &mut [u8]) -> Result<usize, Failure> {
        Failure::due(self.1)?;
        // SAFETY: the kernel writes at most the buffer's size into it.
        let length = unsafe { libc::read(self.0, buffer.as_mut_ptr().cast(), buffer.len()) };
        usize::try_from(length).map_err(|_| Failure::last(self.1))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: closes a descriptor that we own.
        unsafe { libc::close(self.0) };
    }
}

/// Writes a number in decimal; returns its length.
fn write_number(text: &mut [u8], number: i32) -> usize {
    let (mut digits, mut rest, mut length) = ([0_u8; 12], number.unsigned_abs(), 0);
    loop {
        digits[length] = b'0' + (rest % 10) as u8;
        (rest, length) = (rest / 10, length + 1);
        if rest == 0 {
            break;
        }
    }
    for (place, digit) in text.iter_mut().zip(digits[..length].iter().rev()) {
        *place = *digit;
    }
    length
}

/// The names in a buffer of `struct linux_dirent64` (`getdents(2)`): two words, a 16-bit length of
/// the entry, a type byte, a name that ends with a zero.
fn entries(bytes: &[u8]) -> impl Iterator<Item = &str> {
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
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let name_end = text.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&text[name_end + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?; // field 3
    let flags = fields.nth(5)?.parse().ok()?; // 9
    let blocked = fields.nth(22)?.parse().ok()?; // 32
    Some(Stat { flags, state, blocked })
}

/// The lines `State:`, a letter, `TracerPid:`, decimal, then `SigBlk:` and `SigCgt:`, hexadecimal, of `proc(5)` `status`,
/// from as many pieces as `read` gives: the line of the groups may be longer than any buffer.
fn parse_status(
    mut read: impl FnMut(&mut [u8]) -> Result<usize, Failure>,
) -> Result<Option<Status>, Failure> {
    let (mut blocked, mut caught, mut tracer, mut state) = (None, None, None, None);
    let mut buffer = [0_u8; 2048];
    let mut kept = 0;
    while blocked.is_none() || caught.is_none() {
        let filled = match read(&mut buffer[kept..])? {
            0 => return Ok(None),
            length => kept + length,
        };
        let Some(last) = buffer[..filled].iter().rposition(|byte| *byte == b'\n') else {
            // The beginning of a line that does not fit is none of those that are wanted.
            kept = if filled == buffer.len() { 0 } else { filled };
            continue;
        };
        for line in buffer[..last].split(|byte| *byte == b'\n') {
            state = state.or_else(|| line.strip_prefix(b"State:\t")?.first().copied());
            tracer = tracer.or_else(|| number(line, b"TracerPid:", 10));
            blocked = blocked.or_else(|| number(line, b"SigBlk:", 16));
            caught = caught.or_else(|| number(line, b"SigCgt:", 16));
        }
        buffer.copy_within(last + 1..filled, 0);
        kept = filled - last - 1;
    }
    Ok(blocked.zip(caught).map(|(blocked, caught)| Status {
        state: state.unwrap_or(0),
        blocked,
        caught,
        tracer: tracer.unwrap_or(0) as i32,
    }))
}

/// The first argument of `rt_sigtimedwait(2)`, in the line of `proc(5)` `syscall`: the number of the
/// call that the thread waits in and its arguments, or `running`.
fn parse_wait(text: &[u8]) -> Option<usize> {
    /// `rt_sigtimedwait_time64`, of targets with 32 bits.
    const SIGTIMEDWAIT_TIME64: libc::c_long = 421;
    let mut words = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
    let call = words.next()?.parse::<libc::c_long>().ok()?;
    if call != libc::SYS_rt_sigtimedwait && call != SIGTIMEDWAIT_TIME64 {
        return None;
    }
    usize::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()
}

fn number(line: &[u8], name: &[u8], radix: u32) -> Option<u64> {
    let digits = line.strip_prefix(name)?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?.trim(), radix).ok()
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
        assert_eq!(stat.blocked, 16);
        assert!(parse_stat(b"42 (short) S 1 2").is_none());
    }

    #[test]
    fn signals_are_read_in_pieces_of_any_size() {
        let read = |text: &[u8], piece: usize| {
            let mut rest = text;
            parse_status(|buffer| {
                let length = piece.min(buffer.len()).min(rest.len());
                buffer[..length].copy_from_slice(&rest[..length]);
                rest = &rest[length..];
                Ok(length)
            })
            .expect("nothing fails")
            .map(|status| (status.state, status.blocked, status.caught, status.tracer))
        };
        let groups = "1234567890 ".repeat(1000);
        let text = format!(
            "Name:\tx\nState:\tS (sleeping)\nTracerPid:\t420\nGroups:\t{groups}\nSigPnd:\t0000\nSigBlk:\tfffffffe7ffbfeff\nSigIgn:\t00\n\
             SigCgt:\t0a\nCapInh:\t0\n"
        );
        for piece in [1, 7, 100, 2048, usize::MAX] {
            let told = read(text.as_bytes(), piece);
            assert_eq!(told, Some((b'S', 0xffff_fffe_7ffb_feff, 0xa, 420)), "{piece}");
        }
        assert_eq!(read(b"SigBlk:\t00\nSigIgn:\t00\n", 64), None);
    }

    #[test]
    fn who_waits_for_a_signal_is_seen() {
        let call = libc::SYS_rt_sigtimedwait;
        assert_eq!(parse_wait(format!("{call} 0x7f01 0x0 0x0 0x8\n").as_bytes()), Some(0x7f01));
        assert_eq!(parse_wait(format!("{} 0x7f01 0x0\n", call + 1).as_bytes()), None);
        assert_eq!(parse_wait(b"running\n"), None);
        assert_eq!(parse_wait(b"-1 0x7ffe 0x7f02\n"), None);

        let signal = libc::SIGRTMIN() + 3;
        let (told, hear) = std::sync::mpsc::channel();
        let waiter = std::thread::spawn(move || {
            // SAFETY: sets that we own; blocks and waits in this thread alone.
            unsafe {
                let mut set = std::mem::zeroed();
                libc::sigaddset(&raw mut set, signal);
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
                told.send(own_id()).expect("the test listens");
                let mut number = 0;
                libc::sigwait(&raw const set, &raw mut number);
            }
        });
        let thread = hear.recv().expect("the thread tells its id");
        let directory = Directory::open().expect("there is /proc");
        while !directory.waits_for(thread, signal) {
            std::thread::yield_now();
        }
        assert!(!directory.waits_for(thread, libc::SIGTRAP));
        assert!(directory.all().expect("it can be listed").contains(&thread));
        // SAFETY: the thread waits for it.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) };
        waiter.join().expect("it ends");
        assert!(!directory.waits_for(thread, signal) && !directory.is_alive(thread));
    }

    #[test]
    fn what_is_not_known_is_not_taken_for_an_end() {
        let directory = Directory::open().expect("there is /proc");
        let own = own_id();
        assert!(directory.is_alive(own) && matches!(directory.stat(own), Ok(Some(_))));
        // A file that does not exist is a thread that has ended; a directory that is none tells nothing.
        assert!(matches!(directory.stat(i32::MAX), Ok(None)));
        // SAFETY: opens a file that is always there.
        let no_directory = Directory(unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY) });
        assert!(matches!(no_directory.stat(own), Err(failure) if failure.errno == libc::ENOTDIR));
        assert!(no_directory.is_alive(own));
    }

    #[test]
    fn numbers_are_decimal() {
        for number in [0, 7, 10, 4_194_304, i32::MAX] {
            let mut text = [0; 24];
            let length = write_number(&mut text, number);
            assert_eq!(std::str::from_utf8(&text[..length]), Ok(number.to_string().as_str()));
        }
    }
}
