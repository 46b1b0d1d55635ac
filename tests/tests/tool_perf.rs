//! Under `perf record`, which samples every thread by interrupts, and with an uprobe, which is a trap of
//! the kernel's in the code. What would go wrong: a trap of the kernel's that is overwritten, or taken
//! for ours.

#![allow(unsafe_code)]

use std::process::Command;

use immediate::{Error, Immediate, immediate, immediate_read};
use immediate_tests::{child, has_sites, maps};

#[path = "environment/mod.rs"]
mod environment;

use environment::{among_readers, sets};

immediate_tests::scenarios!(uprobes);

#[test]
fn a_program_that_is_sampled_sets() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new("perf")
        .args(["record", "-q", "-g", "-o"])
        .arg(folder.path().join("data"))
        .args([env!("CARGO_BIN_EXE_torture"), "--seconds", "2", "--threads", "2"])
        .output();
    let Ok(output) = output else {
        println!("skipped: perf is not installed");
        return;
    };
    let [out, err] =
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    if !out.contains("reads") && !err.contains("violation") {
        println!("skipped: perf cannot record here: {err}");
        return;
    }
    assert!(output.status.success() && out.contains("violations 0"), "{out}{err}");
}

#[immediate]
static WATCHED: Immediate<u32> = Immediate::new(7);

#[inline(never)]
fn watched() -> u32 {
    std::hint::black_box(immediate_read!(WATCHED))
}

/// An uprobe of this process, until it is closed: `struct perf_event_attr` of linux/perf_event.h up to
/// its fifth version, with the type that the kernel gives to uprobes.
struct Uprobe(libc::c_int);

#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    unused: [u64; 6],
    path: u64,
    offset: u64,
    rest: [u64; 5],
}

impl Uprobe {
    /// `None`, and a line, where it is not allowed.
    fn at(address: usize) -> Option<Self> {
        let kind = std::fs::read_to_string("/sys/bus/event_source/devices/uprobe/type");
        let kind = kind.ok().and_then(|text| text.trim().parse().ok());
        let Some(kind) = kind else {
            println!("skipped: the kernel has no uprobes");
            return None;
        };
        let own = std::env::current_exe().expect("the path of this program");
        let path = std::ffi::CString::new(own.to_str().expect("a path")).expect("a path");
        let attributes = Attributes {
            kind,
            size: size_of::<Attributes>() as u32,
            path: path.as_ptr().addr() as u64,
            offset: offset_of(address),
            ..Attributes::default()
        };
        let (process, processor, group, flags) = (0, -1, -1, 0);
        // SAFETY: the kernel reads a structure of the size that it names, and the path.
        let event = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                process,
                processor,
                group,
                flags,
            )
        };
        if event < 0 {
            println!("skipped: perf_event_open: {}", std::io::Error::last_os_error());
            return None;
        }
        Some(Uprobe(event as libc::c_int))
    }

    /// How often this thread came by.
    fn count(&self) -> u64 {
        let mut count = 0_u64;
        // SAFETY: the kernel writes one number.
        let length = unsafe { libc::read(self.0, (&raw mut count).cast(), size_of::<u64>()) };
        assert_eq!(length, 8);
        count
    }
}

impl Drop for Uprobe {
    fn drop(&mut self) {
        // SAFETY: closes what we opened.
        unsafe { libc::close(self.0) };
    }
}

/// Where code lies in the program's file.
fn offset_of(address: usize) -> u64 {
    let text = maps::text_of(address).remove(0);
    let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc/self/maps");
    let begin = format!("{:x}-", text.start);
    let line = maps.lines().find(|line| line.starts_with(&begin)).expect("the text's line");
    let offset = line.split_whitespace().nth(2).expect("an offset");
    u64::from_str_radix(offset, 16).expect("an offset") + (address - text.start) as u64
}

fn uprobes() {
    let site = maps::sites_of(WATCHED.name())[0];
    let function = watched as fn() -> u32 as usize;
    assert!(site > function, "the site is not the first instruction");
    let Some(beside) = Uprobe::at(function) else { return };
    among_readers(2, || {
        // On the way to a site it is no hindrance.
        WATCHED.set(8).expect("the site is free");
        assert_eq!((watched(), beside.count()), (8, 1));
        WATCHED.set(7).expect("the site is free");
        assert_eq!((watched(), beside.count()), (7, 2));
        // On a site it is left alone. (The kernel executes what the program's file holds there.)
        let on = Uprobe::at(site).expect("the other one was allowed");
        assert_eq!((watched(), on.count()), (7, 1));
        let error = WATCHED.set(9).expect_err("the site is taken");
        println!("refused: {error}");
        assert!(matches!(&error, Error::Site { mismatch, .. } if mismatch.found[0] == 0xcc));
        assert_eq!((watched(), WATCHED.get(), on.count()), (7, 7, 2));
        assert_eq!(sets(&mut 0, 50).refused, 0, "the others are none of its business");
        drop(on);
        WATCHED.set(9).expect("the site is free again");
        assert_eq!((watched(), WATCHED.get()), (9, 9));
        let _on = Uprobe::at(site);
        println!("set to 9, and with an uprobe put on the site then, it reads {}", watched());
    });
    println!("all was as expected");
}

#[test]
fn an_uprobe_on_a_site_is_left_alone() {
    if has_sites() {
        child::succeed("uprobes", &[]);
    }
}
