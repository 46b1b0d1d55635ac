//! Markers under cache pressure, as in 2007: a system call with a marker before and one behind.
//!
//! The markers are compiled out, immediates, or globals, each of them in a cache line of its own.
//! Between two calls the program does nothing, or reads through more data than its first two levels of
//! cache hold, or runs through more code than they hold: there immediates could lose, since they make
//! the code longer.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use immediate::{Immediate, immediate, immediate_if};

use crate::cycles;
use crate::pressure::{Code, Data};
use crate::processors::Caches;

#[immediate]
static BEFORE: Immediate<bool> = Immediate::new(false);
#[immediate]
static BEHIND: Immediate<bool> = Immediate::new(false);

/// A flag that shares its cache lines, and those that are fetched along with them, with nothing.
#[repr(align(256))]
struct Global(AtomicBool);

static GLOBAL_BEFORE: Global = Global(AtomicBool::new(false));
static GLOBAL_BEHIND: Global = Global(AtomicBool::new(false));

#[cold]
#[inline(never)]
fn mark(what: u32) {
    black_box(what);
}

#[allow(unsafe_code)]
#[inline(always)]
fn system_call() -> u32 {
    // SAFETY: asks for a number.
    unsafe { libc::syscall(libc::SYS_getppid) as u32 }
}

macro_rules! calls {
    ($($name:ident: $before:expr, $behind:expr;)*) => {
        $(
            #[inline(never)]
            fn $name() -> u64 {
                let start = cycles::begin();
                if $before {
                    mark(1);
                }
                let parent = system_call();
                if $behind {
                    mark(parent);
                }
                cycles::end() - start
            }
        )*
    };
}

calls! {
    compiled_out: false, false;
    immediate: immediate_if!(BEFORE), immediate_if!(BEHIND);
    global: GLOBAL_BEFORE.0.load(Ordering::Relaxed), GLOBAL_BEHIND.0.load(Ordering::Relaxed);
}

/// A call: its name in keys, and the function, which gives the ticks of [`cycles`] that it took.
pub type Contender = (&'static str, fn() -> u64);

/// All of them. The second is the first again: how far two measurements of the same code lie apart.
pub const CONTENDERS: [Contender; 4] = [
    ("compiled_out", compiled_out),
    ("compiled_out_again", compiled_out),
    ("immediate", immediate),
    ("global", global),
];

/// What happens between two calls.
pub const PRESSURES: [&str; 4] = ["quiet", "linear", "random", "instructions"];

/// What presses.
#[derive(Debug)]
pub struct Pressures {
    data: Data,
    code: Code,
}

impl Pressures {
    /// For the caches of this machine; `None` where [`Code`] cannot be made.
    #[must_use]
    pub fn new() -> Option<Self> {
        // Somebody could switch them: flags that nobody writes are constants to the compiler.
        for global in [&GLOBAL_BEFORE, &GLOBAL_BEHIND] {
            black_box(global).0.store(false, Ordering::Relaxed);
        }
        let caches = Caches::of_this_machine();
        Some(Pressures { data: Data::new(caches), code: Code::new(caches)? })
    }

    /// Presses in one of the ways of [`PRESSURES`].
    pub fn press(&self, how: &str) {
        match how {
            "linear" => self.data.linear(),
            "random" => self.data.random(),
            "instructions" => self.code.run(),
            _ => {}
        }
    }
}
