//! `/proc/self/task`: the threads of the process, read without allocating.

#![allow(unsafe_code)]

use std::os::fd::RawFd;

use super::Failure;
use crate::status::Reason;

/// `PF_IO_WORKER` and `PF_USER_WORKER` of the kernel's `sched.h`: threads of the process that never
/// run user code and block every signal (io_uring's workers).
pub(super) const KERNEL_WORKER: u64 = 0x10 | 0x4000;

/// What `stat` says of one thread.
pub(super) struct Stat {
    pub(super) flags: u64,
    pub(super) state: u8,
    /// The first 31 signals.
    pub(super) blocked: u64,
}

/// What `status` says of one thread's signals.
pub(super) struct Status {
    pub(super) blocked: u64,
    /// Those that have a handler, in the whole process.
    pub(super) caught: u64,
    /// The process that traces it; 0 if none does.
    pub(super) tracer: i32,
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

    /// Opens a file of a thread; `None` when it has ended.
    fn open_file(&self, thread: i32, name: &[u8]) -> Option<File> {
        let mut path = [0_u8; 24];
        let end = write_number(&mut path, thread);
        path[end..end + name.len()].copy_from_slice(name);
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        // SAFETY: the path ends with a zero.
        let file = unsafe { libc::openat(self.0, path.as_ptr().cast(), flags) };
        (file >= 0).then_some(File(file))
    }

    /// Reads a thread's `stat`, a line that is shorter than the buffer; nothing when it has ended.
    pub(super) fn stat<'a>(&self, thread: i32, buffer: &'a mut [u8; 1024]) -> &'a [u8] {
        let length = self.open_file(thread, b"/stat").map_or(0, |file| file.read(buffer));
        &buffer[..length]
    }

    /// Reads a thread's `status`; `None` when it has ended or is not told.
    pub(super) fn status(&self, thread: i32) -> Option<Status> {
        let file = self.open_file(thread, b"/status")?;
        parse_status(|buffer| file.read(buffer))
    }

    /// Whether the thread runs user code.
    pub(super) fn is_alive(&self, thread: i32) -> bool {
        let mut buffer = [0; 1024];
        parse_stat(self.stat(thread, &mut buffer)).is_some_and(|stat| {
            !matches!(stat.state, b'Z' | b'X') && stat.flags & KERNEL_WORKER == 0
        })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // SAFETY: closes a descriptor that we own.
        unsafe { libc::close(self.0) };
    }
}

/// An open file.
struct File(RawFd);

impl File {
    /// How many bytes were read; none at the end, and where it fails.
    fn read(&self, buffer: &mut [u8]) -> usize {
        // SAFETY: the kernel writes at most the buffer's size into it.
        let length = unsafe { libc::read(self.0, buffer.as_mut_ptr().cast(), buffer.len()) };
        usize::try_from(length).unwrap_or(0)
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
pub(super) fn parse_stat(text: &[u8]) -> Option<Stat> {
    let name_end = text.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&text[name_end + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?; // field 3
    let flags = fields.nth(5)?.parse().ok()?; // 9
    let blocked = fields.nth(22)?.parse().ok()?; // 32
    Some(Stat { flags, state, blocked })
}

/// The lines `TracerPid:`, decimal, then `SigBlk:` and `SigCgt:`, hexadecimal, of `proc(5)` `status`,
/// from as many pieces as `read` gives: the line of the groups may be longer than any buffer.
fn parse_status(mut read: impl FnMut(&mut [u8]) -> usize) -> Option<Status> {
    let (mut blocked, mut caught, mut tracer) = (None, None, None);
    let mut buffer = [0_u8; 2048];
    let mut kept = 0;
    while blocked.is_none() || caught.is_none() {
        let filled = kept + match read(&mut buffer[kept..]) {
            0 => return None,
            length => length,
        };
        let Some(last) = buffer[..filled].iter().rposition(|byte| *byte == b'\n') else {
            // The beginning of a line that does not fit is none of those that are wanted.
            kept = if filled == buffer.len() { 0 } else { filled };
            continue;
        };
        for line in buffer[..last].split(|byte| *byte == b'\n') {
            tracer = tracer.or_else(|| number(line, b"TracerPid:", 10));
            blocked = blocked.or_else(|| number(line, b"SigBlk:", 16));
            caught = caught.or_else(|| number(line, b"SigCgt:", 16));
        }
        buffer.copy_within(last + 1..filled, 0);
        kept = filled - last - 1;
    }
    Some(Status { blocked: blocked?, caught: caught?, tracer: tracer.unwrap_or(0) as i32 })
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
                length
            })
            .map(|status| (status.blocked, status.caught, status.tracer))
        };
        let groups = "1234567890 ".repeat(1000);
        let text = format!(
            "Name:\tx\nTracerPid:\t420\nGroups:\t{groups}\nSigPnd:\t0000\nSigBlk:\tfffffffe7ffbfeff\nSigIgn:\t00\n\
             SigCgt:\t0a\nCapInh:\t0\n"
        );
        for piece in [1, 7, 100, 2048, usize::MAX] {
            assert_eq!(read(text.as_bytes(), piece), Some((0xffff_fffe_7ffb_feff, 0xa, 420)), "{piece}");
        }
        assert_eq!(read(b"SigBlk:\t00\nSigIgn:\t00\n", 64), None);
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
