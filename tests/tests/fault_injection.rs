//! Every system call that an update makes is made to fail, one after another and from there on, for
//! every protocol and writer, while threads run the sites.
//!
//! Without the care of the protocols a set would be half done: one site new, another old, a trap that
//! nobody answers, text that stays writable.

use immediate_tests::counter::AtomicU64;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use immediate::{
    Batch, Config, Immediate, Protocol, Writer, immediate, immediate_if, immediate_read,
};
use immediate_arch::os::faults;

#[immediate]
static WIDE: Immediate<u64> = Immediate::new(0);
#[immediate]
static NARROW: Immediate<u16> = Immediate::new(0);
#[immediate]
static ODD: Immediate<bool> = Immediate::new(false);

/// The three variables, each at a site.
#[inline(never)]
fn read() -> (u64, u16, bool) {
    (immediate_read!(WIDE), immediate_read!(NARROW), immediate_if!(ODD))
}

fn values(generation: u64) -> (u64, u16, bool) {
    (generation * 0x0101_0101_0101_0101, generation as u16, generation % 2 == 1)
}

fn set(generation: u64) -> Result<(), immediate::Error> {
    let (wide, narrow, odd) = values(generation);
    Batch::new().set(&WIDE, wide).set(&NARROW, narrow).set(&ODD, odd).apply()
}

/// The protections of the mappings that hold code.
fn protections() -> Vec<String> {
    let maps = fs::read_to_string("/proc/self/maps").expect("maps");
    let codes = maps.lines().filter(|line| line.contains('/')).filter_map(|line| {
        let protection = line.split_ascii_whitespace().nth(1)?;
        protection.contains('x').then(|| protection.to_string())
    });
    codes.collect()
}

/// Runs one set with the faults armed; says whether a call was made to fail.
fn attempt(generation: &mut u64, calls: u32, failures: u32, errno: i32) -> bool {
    let next = *generation % 200 + 1;
    faults::arm(calls, failures, errno);
    let result = set(next);
    let hit = faults::disarm();
    let expected = if result.is_ok() { next } else { *generation };
    assert_eq!(read(), values(expected), "after {result:?}, call {calls}, {failures} failures");
    assert_eq!((WIDE.get(), NARROW.get(), ODD.get()), values(expected), "listed values");
    *generation = expected;
    hit
}

fn sweep(protocol: &str, writer: &str) {
    let stop = AtomicBool::new(false);
    let (ready, reads) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut generation = 200;
    set(generation).expect("a first set, without faults");
    let before = protections();
    let mut seen = 0;
    /// Ends the readers, also when an assertion fails.
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    std::thread::scope(|scope| {
        let end = End(&stop);
        for _ in 0..2 {
            scope.spawn(|| {
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) {
                    let (wide, narrow, _) = read();
                    assert_eq!(wide % 0x0101_0101_0101_0101, 0, "torn: {wide:#x}");
                    assert!(narrow <= 200, "never set: {narrow}");
                    count += 1;
                    if count == 1 {
                        ready.fetch_add(1, Ordering::Relaxed);
                    }
                }
                reads.fetch_add(count, Ordering::Relaxed);
            });
        }
        while ready.load(Ordering::Relaxed) < 2 {
            std::thread::yield_now();
        }
        for errno in [libc::EPERM, libc::ENOMEM] {
            // What `procmem` has stored cannot be undone if it never stores again; only traps keep a
            // batch whole then, which a stopped world does not use.
            let without_traps = (protocol, writer) == ("stop-world", "procmem");
            let endless = if without_traps { 3 } else { u32::MAX };
            for failures in [1, 2, endless] {
                for calls in 0.. {
                    let hit = attempt(&mut generation, calls, failures, errno);
                    // The next set works, and repairs what was left.
                    let old = generation;
                    attempt(&mut generation, u32::MAX, 0, 0);
                    assert_ne!(generation, old, "a set without faults succeeds");
                    assert_eq!(protections(), before, "protections are put back");
                    let trapping = immediate::status().last.map_or(0, |last| last.trapping);
                    assert_eq!(trapping, 0, "no trap is left after a set without faults");
                    if !hit {
                        break;
                    }
                    seen += 1;
                }
            }
        }
        drop(end);
    });
    let reads = reads.into_inner();
    println!("{protocol} by {writer}: {seen} faults, {reads} reads");
    assert!(seen >= 6 && reads > 0);
}

const NAME: &str = "a_set_is_whole_or_nothing_whatever_call_fails";

#[test]
fn a_set_is_whole_or_nothing_whatever_call_fails() {
    if immediate::status().target == "plain" {
        println!("no sites in this build: no system call to fail");
        return;
    }
    let Ok(case) = std::env::var("IMMEDIATE_FAULT_CASE") else {
        return all_cases();
    };
    let (protocol, writer) = case.split_once(' ').expect("a protocol and a writer");
    let config = Config {
        protocol: Protocol::CHOICES.iter().copied().find(|one| one.name() == protocol),
        writer: Writer::ALL.iter().copied().find(|one| one.name() == writer),
        ..Config::default()
    };
    immediate::configure(config).expect("nothing has been set yet");
    sweep(protocol, writer);
}

/// Each case in a process of its own.
fn all_cases() {
    let mut cases = vec!["any any".to_string()];
    for protocol in Protocol::CHOICES {
        for writer in Writer::ALL {
            // Not possible: `procmem` does not store a word at once.
            if (*protocol, *writer) != (Protocol::Quadword, Writer::Procmem) {
                cases.push(format!("{protocol} {writer}"));
            }
        }
    }
    for case in cases {
        let child = immediate_tests::child::again()
            .args(["--nocapture", "--exact", NAME])
            .env("IMMEDIATE_FAULT_CASE", &case)
            .output()
            .expect("this program runs again");
        let output = String::from_utf8_lossy(&child.stdout);
        let errors = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success(), "{case}: {}\n{output}\n{errors}", child.status);
        output
            .lines()
            .filter(|line| line.contains(" faults, "))
            .for_each(|line| println!("{line}"));
    }
}
