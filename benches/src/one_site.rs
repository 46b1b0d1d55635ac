//! One site, a thread that runs through it, and the system calls that a set of it cannot do
//! without.

#![allow(unsafe_code)]

use std::hint::black_box;
use std::io;
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use immediate::{Immediate, Protocol, Writer, immediate, immediate_if};

use crate::system_calls::{REGISTER_SYNC_CORE, Text, count_threads, look_at_threads, membarrier};
use crate::worker;

/// The variable with the one site.
#[immediate]
static SWITCH: Immediate<bool> = Immediate::new(false);

/// The contender that sets the variable.
pub const SET: &str = "set";
/// The contender that makes the protocol's system calls and nothing else.
pub const CALLS: &str = "calls";
/// The contender that makes these and those that look whether every thread can take a trap.
pub const CALLS_AND_LOOKS: &str = "calls_and_looks";
/// The role of a worker with one thread.
pub const ALONE: &str = "one_site_alone";
/// The role of a worker with a second thread that runs through the site.
pub const RUNNING: &str = "one_site_running";

static STOP: AtomicBool = AtomicBool::new(false);
static PASSES: AtomicU64 = AtomicU64::new(0);
static READER: AtomicI32 = AtomicI32::new(0);

#[inline(never)]
fn run_through() {
    // SAFETY: has no arguments and cannot fail.
    READER.store(unsafe { libc::gettid() }, Ordering::Relaxed);
    let (mut on, mut off) = (0_u64, 0_u64);
    while !STOP.load(Ordering::Relaxed) {
        if immediate_if!(SWITCH) {
            on = black_box(on + 1);
        } else {
            off = black_box(off + 1);
        }
        PASSES.store(on + off, Ordering::Relaxed);
    }
}

/// Serves [`SET`] and [`CALLS`], as a worker in the role [`ALONE`] or [`RUNNING`].
///
/// # Errors
///
/// Those of the pipes.
///
/// # Panics
///
/// When the process is not what the role says: the figures would be of something else.
pub fn serve(role: &str) -> io::Result<()> {
    let before = immediate::status();
    if SWITCH.site_count() == 0 {
        println!("plain: this build has no sites");
        return Ok(());
    }
    assert_eq!(SWITCH.site_count(), 1, "the loop has one site");
    let whole = Text::around(run_through as *const () as usize, false);
    let whole = whole.expect("the program is mapped").length;
    let reader = (role == RUNNING).then(|| std::thread::spawn(run_through));
    while reader.is_some() && PASSES.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    let protocol = immediate::status().protocol;
    assert_eq!(protocol == Some(Protocol::Single), reader.is_none(), "{}", immediate::status());
    let barriers = match protocol {
        Some(Protocol::Int3) => 3,
        Some(Protocol::Quadword) => 1,
        _ => 0,
    };
    // Both states of the site have been run, and the page of the site is the process's own.
    SWITCH.set(true).expect("the variable can be set");
    SWITCH.set(false).expect("the variable can be set");
    let mut value = false;
    // Alone there are no barriers, and nobody to see what a set opens; another writer opens nothing.
    let opens_text = immediate::status().writer == Some(Writer::Mprotect);
    let text = reader.as_ref().filter(|_| opens_text).and_then(|_| {
        let mut sites = immediate::sites();
        let site = sites.find(|site| site.variable.ends_with("::SWITCH"));
        opened(site.expect("counted above").address)
    });
    if text.is_some() {
        membarrier(REGISTER_SYNC_CORE);
    }
    let opens = match &text {
        Some(text) => format!(", of which a set opens {} kB", text.length / 1024),
        None => String::new(),
    };
    let greeting = format!(
        "{} with {} sites of {} variables in {} kB of text{opens}",
        protocol.map_or("no protocol", Protocol::name),
        before.sites,
        before.variables,
        whole / 1024,
    );
    // Without a processor of its own the reader would cost the setter nothing.
    let busy = |work: &mut dyn FnMut()| match &reader {
        None => {
            work();
            true
        }
        Some(reader) => is_busy(reader, work),
    };
    let mut set = |iterations| {
        busy(&mut || {
            for _ in 0..iterations {
                value = !value;
                SWITCH.set(value).expect("the variable can be set");
            }
        })
    };
    let mut calls = |iterations| {
        let text = text.as_ref().expect("the site's page is seen writable during a set");
        assert!(barriers > 0, "a protocol with barriers");
        busy(&mut || (0..iterations).for_each(|_| text.calls(barriers)))
    };
    let reader_id = READER.load(Ordering::Relaxed);
    let mut calls_and_looks = |iterations| {
        let text = text.as_ref().expect("the site's page is seen writable during a set");
        busy(&mut || {
            for _ in 0..iterations {
                if protocol == Some(Protocol::Int3) {
                    look_at_threads(&[reader_id]);
                } else {
                    count_threads();
                }
                text.calls(barriers);
            }
        })
    };
    let contenders: &mut [worker::Contender<'_>] =
        &mut [(SET, &mut set), (CALLS, &mut calls), (CALLS_AND_LOOKS, &mut calls_and_looks)];
    let result = worker::serve(&greeting, contenders);
    STOP.store(true, Ordering::Relaxed);
    if let Some(reader) = reader {
        reader.join().expect("the reader ends");
    }
    result
}

/// Does the work; tells whether the reader and this thread had a processor for nine tenths of it.
fn is_busy(reader: &JoinHandle<()>, work: &mut dyn FnMut()) -> bool {
    let mut clock = 0;
    // SAFETY: the thread has not been joined.
    let result = unsafe { libc::pthread_getcpuclockid(reader.as_pthread_t(), &raw mut clock) };
    assert_eq!(result, 0, "a thread has a clock");
    let clocks = [clock, libc::CLOCK_THREAD_CPUTIME_ID];
    let before = (Instant::now(), clocks.map(read_clock));
    work();
    let least = before.0.elapsed().mul_f64(0.9);
    clocks.map(read_clock).iter().zip(before.1).all(|(after, before)| *after - before >= least)
}

fn read_clock(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes into memory that we own.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    assert_eq!(result, 0, "the clock can be read");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What a set makes writable, as the kernel shows it to another thread while sets go on: the calls
/// that are measured on their own must be those of a set.
fn opened(site: usize) -> Option<Text> {
    let (began, found) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let looker = scope.spawn(|| {
            began.store(true, Ordering::Relaxed);
            let end = Instant::now() + PATIENCE;
            let text = loop {
                let text = Text::around(site, true);
                if text.is_some() || Instant::now() > end {
                    break text;
                }
            };
            found.store(true, Ordering::Relaxed);
            text
        });
        // Until a new thread runs it blocks all signals, and on a busy machine that may be long.
        while !began.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        while !found.load(Ordering::Relaxed) {
            SWITCH.set(true).expect("the variable can be set");
            SWITCH.set(false).expect("the variable can be set");
        }
        looker.join().expect("the looker ends")
    })
}

/// How long a writable page is looked for.
const PATIENCE: Duration = Duration::from_secs(5);
