//! There is no `/proc`: a root of its own, as in a chroot or a container that mounts none. What would
//! go wrong: a set by traps although a thread that cannot be seen blocks them, or a set that takes the
//! process for one with a single thread.
//!
//! CASES 13.

use immediate::{Error, Immediate, Protocol, immediate, immediate_read};
use immediate_tests::{child, empty_root, has_sites};

#[path = "environment/mod.rs"]
mod environment;

use environment::{among_readers, assert_all, set, sets};

#[immediate]
static EARLY: Immediate<u32> = Immediate::new(1);

immediate_tests::scenarios!(by_choice, by_quadword, after_the_first_set);

/// With one thread as ever; with several by `quadword` where it is allowed without being asked for,
/// else refused, with the cause.
fn by_choice() {
    if !empty_root::enter() {
        return;
    }
    EARLY.set_early(2).expect("one thread");
    assert_eq!(immediate_read!(EARLY), 2);
    EARLY.set(3).expect("one thread");
    assert_eq!(immediate_read!(EARLY), 3);
    let went = among_readers(2, || sets(&mut 0, 20));
    if !has_sites() {
        return;
    }
    assert_eq!(among_readers(1, || EARLY.set_early(4)), Err(Error::NotSingleThreaded));
    let status = among_readers(1, immediate::status);
    println!("{status}");
    assert!(status.to_string().contains("/proc/self/task cannot be read"), "{status}");
    if went.done > 0 {
        assert_eq!((went.refused, went.protocols), (0, vec![Protocol::Quadword]));
        assert_eq!(status.protocol, Some(Protocol::Quadword));
    } else {
        assert_eq!(status.protocol, None);
        let error = went.error.expect("refused");
        for protocol in ["int3", "stop-world"] {
            let cause = format!("{protocol}: /proc/self/task cannot be read");
            assert!(error.contains(&cause), "{cause:?} in {error}");
        }
    }
}

/// Asked for, it works on every processor.
fn by_quadword() {
    if empty_root::enter() {
        let went = among_readers(2, || sets(&mut 0, 200));
        assert_eq!(went.refused, 0);
        if has_sites() {
            assert_eq!(went.protocols, [Protocol::Quadword]);
        }
    }
}

/// The program sets, then changes its root.
fn after_the_first_set() {
    set(1).expect("there is /proc");
    among_readers(2, || set(2)).expect("there is /proc");
    if empty_root::enter() {
        let mut generation = 2;
        let went = among_readers(2, || sets(&mut generation, 20));
        assert!(went.done == 0 || went.refused == 0, "{went:?}");
        assert_all(generation);
    }
}

#[test]
fn threads_that_cannot_be_seen_are_not_guessed_at() {
    child::succeed("by_choice", &[]);
    child::succeed("after_the_first_set", &[]);
}

#[test]
fn what_needs_no_look_at_threads_can_be_asked_for() {
    child::succeed("by_quadword", &[("IMMEDIATE_PROTOCOL", "quadword")]);
}
