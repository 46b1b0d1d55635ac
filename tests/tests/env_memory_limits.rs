//! Memory is short: no more address space (`RLIMIT_AS`), no more writable memory (`RLIMIT_DATA`, as
//! with strict overcommit: text that becomes writable counts as memory of the process). What would go
//! wrong: a set that fails half way because a page could not be copied, or an abort.

#![allow(unsafe_code)]

use immediate::Writer;
use immediate_tests::{child, has_sites};

#[path = "environment/mod.rs"]
mod environment;

use environment::{among_readers, sets, sets_as_foreseen};

immediate_tests::scenarios!(no_address_space, no_writable_memory, no_writable_memory_at_first);

/// Less than what is there already. Nothing at all would be an exception for old programs
/// (`may_expand_vm` in the kernel).
const A_PAGE: libc::rlim_t = 4096;

fn limit(resource: libc::__rlimit_resource_t, bytes: libc::rlim_t) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: limits this process.
    let done = unsafe { libc::setrlimit(resource, &raw const limit) };
    assert_eq!(done, 0, "setrlimit: {}", std::io::Error::last_os_error());
}

/// Bytes of a line of `/proc/self/status`.
fn amount(name: &str) -> libc::rlim_t {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the line");
    let digits = line.trim_start_matches(':').trim().trim_end_matches(" kB");
    digits.parse::<libc::rlim_t>().expect("KiB") * 1024
}

/// Not a page more may be mapped, of whatever kind.
fn no_address_space() {
    among_readers(2, || {
        let mut generation = 0;
        // What is kept from batch to batch is made by the first.
        assert_eq!(sets(&mut generation, 3).refused, 0);
        limit(libc::RLIMIT_AS, amount("VmSize"));
        assert_eq!(sets(&mut generation, 500).refused, 0);
    });
}

/// Text may not become writable; it is written without.
fn no_writable_memory_at_first() {
    // Room for the stacks of the readers, not for text: the next mapping that would be writable fails.
    among_readers(2, || {
        limit(libc::RLIMIT_DATA, A_PAGE);
        let went = sets(&mut 0, 200);
        assert_eq!(went.refused, 0);
        if has_sites() {
            assert_eq!(went.writers, [Writer::Procmem]);
            let status = immediate::status();
            assert!(status.to_string().contains("mprotect(text, RWX): Cannot allocate memory"));
        }
    });
}

/// Short of memory between two sets.
fn no_writable_memory() {
    let mut generation = 0;
    assert_eq!(sets_as_foreseen(&mut generation, 10).refused, 0);
    among_readers(2, || {
        limit(libc::RLIMIT_DATA, A_PAGE);
        let went = sets(&mut generation, 200);
        assert_eq!(went.refused, 0);
    });
}

#[test]
fn a_set_needs_no_more_address_space() {
    child::succeed("no_address_space", &[]);
}

#[test]
fn where_text_may_not_count_as_memory_it_is_written_without() {
    child::succeed("no_writable_memory_at_first", &[]);
    child::succeed("no_writable_memory", &[]);
}
