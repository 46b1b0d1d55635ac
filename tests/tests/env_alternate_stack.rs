//! Alternate stacks of exactly the size that the kernel asks for (`AT_MINSIGSTKSZ`), and room for a
//! handler where that is no more than the frame, with a page below that must not be touched. What would go wrong: a trap whose frame and handler do not fit, or a
//! second signal on top of it: the kernel ends the process.
//!
//! Found with signals that struck threads of Rust's own, whose alternate stack holds one frame.

#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use immediate::Protocol;
use immediate_tests::signals::{self, Targets};
use immediate_tests::{child, has_sites};

#[path = "environment/mod.rs"]
mod environment;

use environment::{Reader, among_readers, read, sets};

immediate_tests::scenarios!(smallest);

const PATTERN: u8 = 0xa5;
/// The largest frame without AMX, whose tiles the kernel counts although it saves none of a thread
/// that has not asked for them.
const FRAME: usize = 3632;
/// What the handler itself may need, unoptimised, beside the frame.
const HANDLER: usize = 1536;

/// An alternate stack of this thread, with a page below that cannot be touched.
struct Stack {
    bottom: *mut u8,
    size: usize,
}

impl Stack {
    fn smallest() -> Self {
        // SAFETY: asks for numbers; maps memory of our own, of which the lowest page is closed.
        unsafe {
            let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
            let size = (libc::getauxval(libc::AT_MINSIGSTKSZ) as usize).max(FRAME + HANDLER);
            let length = page + size.next_multiple_of(page);
            let (protection, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let memory = libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0);
            assert_ne!(memory, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(memory, page, libc::PROT_NONE), 0);
            let bottom = memory.cast::<u8>().add(page);
            bottom.write_bytes(PATTERN, size);
            let stack = libc::stack_t { ss_sp: bottom.cast(), ss_flags: 0, ss_size: size };
            assert_eq!(libc::sigaltstack(&raw const stack, ptr::null_mut()), 0);
            Stack { bottom, size }
        }
    }

    /// Bytes that have been used, from the top.
    fn depth(&self) -> usize {
        // SAFETY: the memory is ours; volatile, for the kernel writes it.
        let is_fresh = |at: &usize| unsafe { self.bottom.add(*at).read_volatile() } == PATTERN;
        self.size - (0..self.size).take_while(is_fresh).count()
    }
}

extern "C" fn count(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    std::hint::black_box(read());
    COUNT.fetch_add(1, SeqCst);
}

static TARGETS: Targets = Targets::new();

/// Threads with the smallest alternate stacks read while variables are set and signals strike.
fn smallest() {
    // On the thread's own stack, as a program does that gives its threads so small an alternate one.
    signals::install(libc::SIGUSR1, count, signals::set_of(&[]), libc::SA_RESTART);
    static DEPTH: AtomicU64 = AtomicU64::new(0);
    static STOP: AtomicU64 = AtomicU64::new(0);
    std::thread::scope(|scope| {
        struct Stop;
        impl Drop for Stop {
            fn drop(&mut self) {
                STOP.store(1, SeqCst);
            }
        }
        let _stop = Stop;
        for _ in 0..2 {
            scope.spawn(|| {
                let stack = Stack::smallest();
                TARGETS.add_own();
                let mut reader = Reader::new();
                while STOP.load(SeqCst) == 0 {
                    reader.look();
                }
                DEPTH.fetch_max(stack.depth() as u64, SeqCst);
                // The thread takes an alternate stack of Rust's with it when it ends.
            });
        }
        signals::storm(&TARGETS, libc::SIGUSR1, Duration::from_micros(200), || {
            let went = among_readers(1, || sets(&mut 0, 2_000));
            assert_eq!(went.refused, 0);
            if has_sites() {
                assert_eq!(went.protocols, [Protocol::Int3]);
            }
        });
    });
    let depth = DEPTH.load(SeqCst);
    // SAFETY: asks for a number.
    println!("{depth} bytes used of {}", unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) });
    assert!(depth > 0 || !has_sites(), "nobody trapped");
    assert!(depth <= (FRAME + HANDLER) as u64, "one frame and what the handler needs");
}

#[test]
fn a_trap_needs_one_frame() {
    child::succeed("smallest", &[("IMMEDIATE_PROTOCOL", "int3")]);
}
