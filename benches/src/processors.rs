//! Which processors this process may use, and how large their caches are.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;

/// The processors that the calling thread may run on.
#[must_use]
pub fn allowed() -> Vec<usize> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the kernel writes into a set that we own, and zeros are an empty set.
    let set = unsafe {
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr());
        set.assume_init()
    };
    // SAFETY: reads the set, inside its size.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

/// Keeps the calling thread, and the threads and processes that it will start, on one processor: the
/// last that it may use, where the kernel does less of its own work than on the first.
pub fn keep_to_one() {
    let Some(&last) = allowed().last() else { return };
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: zeros are an empty set; the processor is one that the kernel has named. A refusal
    // leaves the thread where it may run, which is no error of a measurement.
    unsafe {
        libc::CPU_SET(last, &mut *set.as_mut_ptr());
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set.as_ptr());
    }
}

/// Bytes of the caches that a processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// First level, data.
    pub first: usize,
    /// Second level.
    pub second: usize,
    /// Last level.
    pub last: usize,
}

/// Bytes of a cache line.
pub const LINE: usize = 64;

impl Caches {
    /// What the kernel tells; where it tells nothing, sizes of a common machine.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let mut caches = Caches { first: 32 << 10, second: 1 << 20, last: 32 << 20 };
        for index in 0..8 {
            let read = |name: &str| {
                let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
                std::fs::read_to_string(path).map(|text| text.trim().to_string())
            };
            let (Ok(level), Ok(kind), Ok(size)) = (read("level"), read("type"), read("size"))
            else {
                continue;
            };
            let Some(bytes) = size.strip_suffix('K').and_then(|size| size.parse::<usize>().ok())
            else {
                continue;
            };
            match (level.as_str(), kind.as_str()) {
                ("1", "Data" | "Unified") => caches.first = bytes << 10,
                ("2", "Data" | "Unified") => caches.second = bytes << 10,
                (_, "Unified") => caches.last = bytes << 10,
                _ => {}
            }
        }
        caches
    }
}
