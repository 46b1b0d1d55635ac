//! Several ways closed at once. What would go wrong: a protocol that is chosen although no writer suits
//! it, while another one would have found a writer; an error that names one cause of two.
//!
//! CASES 13, "then together".

use immediate::{Protocol, Writer};
use immediate_tests::seccomp::{self, Answer, Calls};
use immediate_tests::{child, empty_root, has_sites, signals};

#[path = "environment/mod.rs"]
mod environment;

use environment::{among_readers, assert_all, set, sets, sets_as_foreseen};

immediate_tests::scenarios!(
    no_barrier_no_mprotect,
    no_barrier_no_writer,
    no_traps_no_mprotect,
    no_proc_no_mprotect,
);

/// `mprotect` of what becomes writable and stays executable is answered as under
/// `MemoryDenyWriteExecute` of older systemd, which is such a filter.
fn deny_mprotect() {
    // Text is opened with three rights at once; nothing else of this process ever is.
    let writable = libc::PROT_EXEC.cast_unsigned();
    seccomp::answer(Calls::WithBits(libc::SYS_mprotect, 2, writable), Answer::Errno(libc::EPERM));
}

fn deny_barrier() {
    seccomp::answer(Calls::All(libc::SYS_membarrier), Answer::Errno(libc::EPERM));
}

fn deny_memory() {
    seccomp::answer(Calls::All(libc::SYS_pwrite64), Answer::Errno(libc::EPERM));
}

fn stops_the_world_by_procmem() {
    let went = sets_as_foreseen(&mut 0, 100);
    assert_eq!(went.refused, 0);
    if has_sites() {
        assert_eq!(
            (went.protocols, went.writers),
            (vec![Protocol::StopWorld], vec![Writer::Procmem])
        );
    }
}

fn no_barrier_no_mprotect() {
    deny_barrier();
    deny_mprotect();
    stops_the_world_by_procmem();
}

fn no_barrier_no_writer() {
    deny_barrier();
    deny_mprotect();
    deny_memory();
    let went = sets_as_foreseen(&mut 0, 5);
    if has_sites() {
        assert_eq!(went.done, 0);
        let error = went.error.expect("refused");
        for cause in ["mprotect(text, RWX): ", "procmem: "] {
            assert!(error.contains(cause), "{cause:?} in {error}");
        }
        assert_all(0);
    }
}

/// `quadword`, where it is allowed, finds no writer that stores a word at once; `stop-world` needs none.
fn no_traps_no_mprotect() {
    signals::mask(libc::SIG_BLOCK, &signals::set_of(&[libc::SIGTRAP]));
    deny_mprotect();
    stops_the_world_by_procmem();
}

fn no_proc_no_mprotect() {
    if !empty_root::enter() {
        return;
    }
    deny_mprotect();
    let error = set(1);
    if has_sites() {
        let error = error.expect_err("neither writer is open").to_string();
        println!("refused: {error}");
        assert_all(0);
        let went = among_readers(1, || sets(&mut 0, 3));
        assert_eq!(went.done, 0);
    }
}

#[test]
fn another_protocol_finds_a_writer() {
    child::succeed("no_barrier_no_mprotect", &[]);
    child::succeed("no_traps_no_mprotect", &[]);
}

#[test]
fn where_nothing_is_open_the_error_names_every_cause() {
    child::succeed("no_barrier_no_writer", &[]);
    child::succeed("no_proc_no_mprotect", &[]);
}
