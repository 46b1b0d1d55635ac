//! The system calls that a set cannot do without, made on their own: what a set is measured against.

#![allow(unsafe_code)]

use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::Duration;

use immediate::Config;

/// Pages of text that hold a site.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// Its first address.
    pub start: usize,
    /// Its bytes.
    pub length: usize,
    /// Address of the site.
    pub site: usize,
}

/// The barrier after which no processor runs old code.
pub const SYNC_CORE: libc::c_int = 1 << 5;
/// What a process does before its first such barrier.
pub const REGISTER_SYNC_CORE: libc::c_int = 1 << 6;

/// The system call `membarrier`.
///
/// # Panics
///
/// When the kernel refuses it: then there is nothing to compare with.
pub fn membarrier(command: libc::c_int) {
    // SAFETY: takes three integers and touches no memory of ours.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    assert_eq!(result, 0, "membarrier: {}", io::Error::last_os_error());
}

impl Text {
    /// The mapping around `site`; `None` if it must be writable and is not.
    ///
    /// # Panics
    ///
    /// When `/proc/self/maps` cannot be read.
    #[must_use]
    pub fn around(site: usize, writable: bool) -> Option<Self> {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps can be read");
        maps.lines().find_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let start = usize::from_str_radix(start, 16).ok()?;
            let end = usize::from_str_radix(end, 16).ok()?;
            let wanted = (start..end).contains(&site) && (!writable || rest.starts_with("rw"));
            wanted.then_some(Text { start, length: end - start, site })
        })
    }

    /// Changes the protection of the pages.
    ///
    /// # Panics
    ///
    /// When the kernel refuses it.
    pub fn protect(&self, protection: libc::c_int) {
        // SAFETY: the text of this program, which stays readable and executable.
        let result =
            unsafe { libc::mprotect(self.start as *mut libc::c_void, self.length, protection) };
        assert_eq!(result, 0, "mprotect: {}", io::Error::last_os_error());
    }

    /// The system calls of one set by a protocol with so many barriers, with a store to the site's
    /// page before each, so that taking the page's writability away flushes what it would in a set.
    pub fn calls(&self, barriers: usize) {
        self.protect(libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC);
        for _ in 0..barriers {
            // SAFETY: the segment is writable, and a byte that is stored as it was changes nothing;
            // sets are made by this thread.
            let byte = unsafe { AtomicU8::from_ptr(self.site as *mut u8) };
            byte.store(byte.load(Ordering::Relaxed), Ordering::Release);
            membarrier(SYNC_CORE);
        }
        self.protect(libc::PROT_READ | libc::PROT_EXEC);
    }
}

impl Text {
    /// The page of a site.
    #[must_use]
    pub fn page_of(site: usize) -> Self {
        // SAFETY: asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        Text { start: site & !(page - 1), length: page, site }
    }
}

/// The other system calls: those that look at the threads, and those that stop them.
#[derive(Debug)]
pub struct Calls {
    text: Text,
    /// The other threads of the process, as of the last [`prepare`](Calls::prepare).
    pub others: Vec<libc::pid_t>,
}

static ARRIVED: AtomicU32 = AtomicU32::new(0);
static ROUND: AtomicU32 = AtomicU32::new(0);

/// Waits in the handler until the round is over.
extern "C" fn wait(_: libc::c_int) {
    let round = ROUND.load(Ordering::Acquire);
    ARRIVED.fetch_add(1, Ordering::AcqRel);
    while round % 2 == 1 && ROUND.load(Ordering::Acquire) == round {
        // SAFETY: waits at a static word.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                ROUND.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                round,
                std::ptr::null::<libc::timespec>(),
            );
        }
    }
}

fn stop_signal() -> libc::c_int {
    libc::SIGRTMIN() + 3
}

impl Calls {
    /// For sets of a site in this text.
    #[must_use]
    pub fn new(text: Text) -> Self {
        Calls { text, others: Vec::new() }
    }

    /// Says that the process now has so many other threads.
    ///
    /// # Panics
    ///
    /// When the kernel shows another number, or refuses barriers.
    pub fn prepare(&mut self, others: usize) {
        // SAFETY: asks for a number.
        let own = unsafe { libc::getpid() };
        let tasks = std::fs::read_dir("/proc/self/task").expect("the threads are listed");
        self.others = tasks
            .flatten()
            .filter_map(|task| task.file_name().to_str()?.parse().ok())
            .filter(|task| *task != own)
            .collect();
        assert_eq!(self.others.len(), others, "the threads of this process");
        membarrier(REGISTER_SYNC_CORE);
    }

    /// Installs the handler that threads wait in.
    ///
    /// # Panics
    ///
    /// When the kernel refuses it.
    pub fn prepare_to_stop(&self) {
        // SAFETY: a handler that only waits; zeros are an action whose fields are set then.
        let installed = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = wait as extern "C" fn(_) as usize;
            action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
            libc::sigaction(stop_signal(), &raw const action, std::ptr::null_mut())
        };
        assert_eq!(installed, 0, "sigaction: {}", io::Error::last_os_error());
    }

    /// Opens the text, sends every other thread a signal, waits until all have come, lets them go and
    /// closes the text.
    pub fn stop_world(&self) {
        self.text.protect(libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC);
        ARRIVED.store(0, Ordering::Release);
        ROUND.fetch_add(1, Ordering::AcqRel);
        // SAFETY: sends a signal, for which there is a handler, to threads of this process.
        unsafe {
            let process = libc::getpid();
            for thread in &self.others {
                libc::syscall(libc::SYS_tgkill, process, *thread, stop_signal());
            }
        }
        while (ARRIVED.load(Ordering::Acquire) as usize) < self.others.len() {
            std::thread::yield_now();
        }
        ROUND.fetch_add(1, Ordering::AcqRel);
        // SAFETY: wakes those that wait at a static word.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                ROUND.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                i32::MAX,
            );
        }
        self.text.protect(libc::PROT_READ | libc::PROT_EXEC);
    }
}

/// Asks how many threads there are, as every set does.
///
/// # Panics
///
/// When they cannot be counted.
pub fn count_threads() {
    let links = std::fs::metadata("/proc/self/task").map(|task| task.nlink());
    assert!(links.is_ok_and(|links| links >= 3), "the threads can be counted");
}

/// The calls that make sure that every thread can take a trap, those of `others` among them, as `strace` shows them: the threads
/// are counted and listed, the signals of each are read, and the handlers are asked for.
pub fn look_at_threads(others: &[libc::pid_t]) {
    count_threads();
    let mut buffer = [0_u64; 512];
    // SAFETY: paths that end with a zero, and buffers of ours with their sizes; the descriptors
    // are opened and closed here.
    unsafe {
        libc::syscall(libc::SYS_gettid);
        libc::getpid();
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut set);
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        let directory = libc::open(c"/proc/self/task".as_ptr(), flags | libc::O_DIRECTORY);
        libc::lseek(directory, 0, libc::SEEK_SET);
        let size = size_of_val(&buffer);
        let list = |buffer: &mut [u64]| {
            libc::syscall(libc::SYS_getdents64, directory, buffer.as_mut_ptr(), size)
        };
        while list(&mut buffer) > 0 {}
        for (index, thread) in others.iter().enumerate() {
            let name = if index == 0 { "status" } else { "stat" };
            let path = format!("{thread}/{name}\0");
            let file = libc::openat(directory, path.as_ptr().cast(), flags);
            libc::read(file, buffer.as_mut_ptr().cast(), if index == 0 { 2048 } else { 1024 });
            libc::close(file);
        }
        // Rust's own two handlers, and at last that of the trap.
        for signal in [libc::SIGBUS, libc::SIGSEGV, libc::SIGTRAP] {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action);
        }
        libc::close(directory);
    }
}

/// Lets stopping the world take as long as a busy machine needs.
///
/// # Panics
///
/// After the first set.
pub fn be_patient() {
    let config = Config { stop_within: Some(Duration::from_secs(60)), ..Config::default() };
    immediate::configure(config).expect("nothing has been set yet");
}
