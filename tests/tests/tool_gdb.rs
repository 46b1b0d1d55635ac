//! Under gdb: a breakpoint on a site, and single steps through a set while another thread reads. What
//! would go wrong: a breakpoint that is overwritten, or taken for a trap of ours; a trap of ours that
//! the debugger keeps for itself, so that its thread goes on in the middle of an instruction; a set that
//! is half done when a step lands between two stores.
//!
//! gdb keeps SIGTRAP for itself unless it is told otherwise, and when it is told otherwise it gives the
//! program its own steps and breakpoints too. So under a debugger a set uses no traps.

#![allow(unsafe_code)]

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use immediate::{Error, Immediate, Protocol, immediate, immediate_read};
use immediate_tests::{has_sites, maps};

#[path = "environment/mod.rs"]
mod environment;

use environment::{among_readers, sets};

immediate_tests::scenarios!(breakpoint_on_a_site, steps_over_a_set);

#[immediate]
static WATCHED: Immediate<u32> = Immediate::new(7);

/// Where the debugger finds the site.
#[unsafe(no_mangle)]
static IMMEDIATE_TEST_SITE: AtomicUsize = AtomicUsize::new(0);

#[inline(never)]
fn watched() -> u32 {
    immediate_read!(WATCHED)
}

/// Where the debugger stops; each time it is told what comes.
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn immediate_test_stop(number: u32) {
    std::hint::black_box(number);
}

fn breakpoint_on_a_site() {
    IMMEDIATE_TEST_SITE.store(maps::sites_of(WATCHED.name())[0], SeqCst);
    among_readers(1, || {
        WATCHED.set(8).expect("there is no breakpoint yet");
        // The debugger puts a breakpoint on the site.
        immediate_test_stop(1);
        assert_eq!(watched(), 8, "with a breakpoint on the way");
        let error = WATCHED.set(9).expect_err("a breakpoint is on the site");
        println!("refused: {error}");
        assert!(matches!(&error, Error::Site { mismatch, .. } if mismatch.found[0] == 0xcc));
        assert_eq!((watched(), WATCHED.get()), (8, 8));
        // Other variables are none of its business.
        assert_eq!(sets(&mut 0, 20).refused, 0);
        // The debugger takes it away.
        immediate_test_stop(2);
        WATCHED.set(9).expect("there is no breakpoint any more");
        assert_eq!(watched(), 9);
    });
    println!("all was as expected");
}

fn steps_over_a_set() {
    among_readers(1, || {
        let mut generation = 0;
        sets(&mut generation, 5);
        immediate_test_stop(1);
        // The debugger steps through these.
        let went = sets(&mut generation, 50);
        assert_eq!(went.refused, 0);
        assert!(!went.protocols.contains(&Protocol::Int3));
    });
    println!("{}", immediate::status());
    println!("all was as expected");
}

/// Runs a scenario under gdb, which follows a script; `None`, and a line, where that cannot be done.
fn gdb(scenario: &str, script: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("script");
    let begin = "set pagination off\nset debuginfod enabled off\n\
                 handle SIG63 nostop noprint pass\nset language c\nbreak immediate_test_stop\nrun\n";
    std::fs::write(&file, format!("{begin}{script}")).expect("a script");
    let mut command = Command::new("gdb");
    command.args(["-nx", "-batch", "-x"]).arg(&file).arg("--args");
    command.arg(std::env::current_exe().expect("the path of this program"));
    let Ok(output) = command.env("IMMEDIATE_TEST_SCENARIO", scenario).output() else {
        println!("skipped: gdb is not installed");
        return None;
    };
    let [out, err] =
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    let text = format!("{out}{err}");
    if text.contains("ptrace: ") || text.contains("Could not trace the inferior") {
        println!("skipped: gdb may not trace here");
        return None;
    }
    Some(text)
}

#[test]
fn a_breakpoint_on_a_site_is_left_alone() {
    if !has_sites() {
        return;
    }
    let script = "break **(unsigned long *)&IMMEDIATE_TEST_SITE\n\
                  commands\nsilent\nprintf \"at the site\\n\"\ncontinue\nend\n\
                  continue\ndelete 2\ncontinue\n";
    let Some(text) = gdb("breakpoint_on_a_site", script) else { return };
    assert!(text.contains("all was as expected"), "{text}");
    assert!(text.matches("at the site").count() >= 2, "{text}");
    assert!(text.contains("refused: cannot set tool_gdb::WATCHED: the code at 0x"), "{text}");
    assert!(text.contains("exited normally"), "{text}");
}

#[test]
fn single_steps_over_a_set_change_nothing() {
    let script = "set $step = 0\nwhile $step < 40\nstepi 100\nset $step = $step + 1\nend\n\
                  printf \"stepped\\n\"\ndelete\ncontinue\n";
    let Some(text) = gdb("steps_over_a_set", script) else { return };
    assert!(text.contains("stepped"), "{text}");
    assert!(text.contains("all was as expected") && text.contains("exited normally"), "{text}");
}
