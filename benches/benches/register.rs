//! What does registering a module cost for each of its sites? Target: at most 20 ns, and memory for
//! one index and no more.
//!
//! Two libraries are loaded in turn, with the same 16 variables: one has 100,000 sites, one has 16. The
//! difference of the two times is what the sites cost, the pages of their records among it, which are
//! read for the first time in that mapping.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use criterion::Criterion;
use immediate::{Immediate, immediate};
use immediate_benches::alternate::{Effort, alternate};

const SITES: usize = 100_000;
const FEW: usize = 16;

/// The host takes part, so that the runtime is its own and allocates here.
#[immediate]
static HOST: Immediate<bool> = Immediate::new(false);

/// Counts what is allocated.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: by the caller.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Builds the module with so many sites; none without a C compiler.
fn build(sites: usize) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sites_{sites}.so"));
    let status = Command::new("cc")
        .args(["-O2", "-fPIC", "-shared", "-I"])
        .arg(here.join("../include"))
        .arg(format!("-DSITES={sites}"))
        .arg(here.join("module/sites.c"))
        .arg("-o")
        .arg(&out)
        .status();
    status.is_ok_and(|status| status.success()).then_some(out)
}

/// What this thread has used of a processor: nothing of it waits, and other programs do not count.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes into a structure of our own.
    let answer = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(answer, 0, "the clock exists");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

struct Loaded {
    time: Duration,
    allocations: usize,
    bytes: usize,
}

/// Loads a library, looks at what that took, and unloads it.
fn load(path: &Path, sites: usize) -> Loaded {
    let name = CString::new(path.to_str().expect("UTF-8")).expect("no zero inside");
    let (allocations, bytes) = (ALLOCATIONS.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed));
    let begin = processor_time();
    // SAFETY: a library of this benchmark.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
    let time = processor_time() - begin;
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - allocations;
    let bytes = BYTES.load(Ordering::Relaxed) - bytes;
    assert!(!handle.is_null(), "{} loads", path.display());
    let module = immediate::modules().find(|module| Path::new(&module.path) == path);
    assert_eq!(module.expect("registered").sites, sites, "all sites are registered");
    // SAFETY: opened above.
    assert_eq!(unsafe { libc::dlclose(handle) }, 0);
    Loaded { time, allocations, bytes }
}

fn main() {
    let effort = Effort::asked();
    if immediate::status().target != "x86_64" {
        println!("no sites here: nothing to register");
        return;
    }
    HOST.set(true).expect("set");
    let (Some(many), Some(few)) = (build(SITES), build(FEW)) else {
        println!("not measured: cc does not build the module");
        return;
    };
    let libraries = [(&many, SITES), (&few, FEW)];
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("load a module of 16 variables");
    group.sample_size(20);
    for (path, sites) in libraries {
        group.bench_function(format!("{sites} sites"), |bencher| {
            bencher.iter_custom(|loads| (0..loads).map(|_| load(path, sites).time).sum());
        });
    }
    group.finish();
    let rounds = match effort {
        Effort::Full => 201,
        Effort::Try => 3,
        Effort::None => return,
    };
    let rounds = alternate(2, rounds, |contender| {
        let (path, sites) = libraries[contender];
        load(path, sites).time
    });
    println!("processor time of a load with {SITES} sites: {} µs", rounds.microseconds(0, 1));
    println!("processor time of a load with {FEW} sites: {} µs", rounds.microseconds(1, 1));
    let sites = (SITES - FEW) as f64;
    let (many, few) = (rounds.microseconds(0, 1).median, rounds.microseconds(1, 1).median);
    let nanoseconds = (many - few) * 1000.0 / sites;
    let verdict = if nanoseconds <= 20.0 { "met" } else { "MISSED" };
    println!("registering a site: {nanoseconds:.1} ns; target at most 20: {verdict}");
    let [more, less] = libraries.map(|(path, sites)| load(path, sites));
    println!(
        "allocations: {} with {SITES} sites, {} with {FEW}; bytes: {} and {}",
        more.allocations, less.allocations, more.bytes, less.bytes
    );
    // Four bytes a site are the index.
    let index = (more.bytes - less.bytes) as f64 / sites;
    let verdict = if index <= 4.1 { "met" } else { "MISSED" };
    println!("memory for a site: {index:.2} bytes; target at most 4.1: {verdict}");
    assert!(more.allocations <= less.allocations + 8, "no allocation a site");
}
