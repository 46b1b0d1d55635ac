//! Text that the kernel does not let the program change: `MemoryDenyWriteExecute` (`PR_SET_MDWE`),
//! `mseal`, a process that is not dumpable, and all at once. What would go wrong: a panic or a crash
//! in the middle of a set, half of the sites changed, or an error that does not say what stands in
//! the way.
//!
//! CASES 13 (seen in systemd, issue 25276; FEX, issue 3336; openucx, issue 10781).

#![allow(unsafe_code)]

use immediate::{Config, Protocol, Writer};
use immediate_tests::{child, has_sites, maps};

#[path = "environment/mod.rs"]
mod environment;

use environment::sets_as_foreseen;

immediate_tests::scenarios!(
    denied,
    denied_to_one_store,
    sealed,
    sealed_after_the_first_set,
    not_dumpable,
    denied_and_not_dumpable,
    denied_sealed_and_not_dumpable,
);

// From linux/prctl.h and asm/unistd_64.h.
const PR_SET_MDWE: libc::c_int = 65;
const PR_MDWE_REFUSE_EXEC_GAIN: libc::c_ulong = 1;
const SYS_MSEAL: libc::c_long = 462;

const SETS: u64 = 200;

/// As systemd's `MemoryDenyWriteExecute` does. Says so and gives `false` where the kernel cannot.
fn deny() -> bool {
    // SAFETY: takes numbers; changes what this process may do.
    let done = unsafe { libc::prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) } == 0;
    if !done {
        println!("skipped: PR_SET_MDWE: {}", std::io::Error::last_os_error());
    }
    done
}

/// Seals the text that the sites lie in.
fn seal() -> bool {
    let address = environment::read as fn() -> _ as usize;
    let text = maps::text_of(address).remove(0);
    // SAFETY: takes numbers; the mapping can no longer be changed, which is what the test is about.
    let done = unsafe { libc::syscall(SYS_MSEAL, text.start, text.end - text.start, 0) } == 0;
    if !done {
        println!("skipped: mseal: {}", std::io::Error::last_os_error());
    }
    done
}

/// Not dumpable, and not root, who may look all the same.
fn hide() {
    // SAFETY: changes the rights of this process, to fewer.
    unsafe {
        if libc::geteuid() == 0 {
            assert_eq!(libc::setresgid(65534, 65534, 65534), 0);
            assert_eq!(libc::setresuid(65534, 65534, 65534), 0);
        }
        assert_eq!(libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
    }
}

/// Every set works, by `procmem`.
fn works_by_procmem() {
    let went = sets_as_foreseen(&mut 0, SETS);
    if has_sites() {
        assert_eq!((went.refused, went.writers), (0, vec![Writer::Procmem]));
    }
}

/// Nothing can be set, and the error says why.
fn is_refused(causes: &[&str]) {
    let went = sets_as_foreseen(&mut 0, 5);
    if has_sites() {
        assert_eq!(went.done, 0);
        let error = went.error.expect("refused");
        for cause in causes {
            assert!(error.contains(cause), "{cause:?} in {error}");
        }
    }
}

fn denied() {
    if deny() {
        works_by_procmem();
    }
}

/// `quadword` needs a writer that stores a word at once, so another protocol takes its place.
fn denied_to_one_store() {
    if !deny() {
        return;
    }
    let config = Config { protocol: Some(Protocol::Quadword), ..Config::default() };
    immediate::configure(config).expect("nothing has been set");
    is_refused(&[
        "quadword: no text writer suits it",
        "mprotect(text, RWX)",
        "procmem: it does not store a whole word at once",
    ]);
}

fn sealed() {
    if seal() {
        works_by_procmem();
    }
}

/// By `mprotect` first, then sealed.
fn sealed_after_the_first_set() {
    let mut generation = 0;
    let went = sets_as_foreseen(&mut generation, 10);
    assert_eq!(went.refused, 0);
    if seal() {
        let went = sets_as_foreseen(&mut generation, SETS);
        if has_sites() {
            assert_eq!((went.refused, went.writers), (0, vec![Writer::Procmem]));
        }
    }
}

fn not_dumpable() {
    hide();
    let went = sets_as_foreseen(&mut 0, SETS);
    if has_sites() {
        assert_eq!((went.refused, went.writers), (0, vec![Writer::Mprotect]));
    }
}

fn denied_and_not_dumpable() {
    if deny() {
        hide();
        is_refused(&["mprotect(text, RWX)", "open(/proc/self/mem)", "immediate_no_patching"]);
    }
}

fn denied_sealed_and_not_dumpable() {
    if deny() && seal() {
        hide();
        is_refused(&["mprotect(text, RWX)", "open(/proc/self/mem)", "immediate_no_patching"]);
    }
}

#[test]
fn where_text_may_not_become_writable_it_is_written_as_a_debugger_does() {
    for scenario in ["denied", "sealed", "sealed_after_the_first_set"] {
        child::succeed(scenario, &[]);
    }
}

#[test]
fn where_the_memory_may_not_be_opened_text_becomes_writable() {
    child::succeed("not_dumpable", &[]);
}

#[test]
fn where_neither_may_be_the_error_names_both() {
    child::succeed("denied_and_not_dumpable", &[]);
    child::succeed("denied_sealed_and_not_dumpable", &[]);
}

#[test]
fn a_protocol_without_a_writer_says_so() {
    child::succeed("denied_to_one_store", &[]);
}
