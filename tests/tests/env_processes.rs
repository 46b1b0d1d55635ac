//! Other processes made while variables are set: `posix_spawn`, whose child shares the memory for a
//! moment; `vfork` whose child reads; `exec` of the program itself; a process that shares all of the
//! memory without being a thread (`clone(CLONE_VM)`). What would go wrong: a child that is killed by a
//! trap of its parent's, a set that takes the moment of a `posix_spawn` for a thread that blocks its
//! signals, values that survive `exec`.
//!
//! A child of `vfork` that sets is not taken for a process with a single thread.
//!
//! (`fork` is `case_fork_child_reads_and_sets`.)

#![allow(unsafe_code)]

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use immediate::Protocol;
use immediate_tests::{child, has_sites};

#[path = "environment/mod.rs"]
mod environment;

use environment::{Reader, among_readers, assert_all, read, set, sets};

immediate_tests::scenarios!(
    spawns,
    vforks,
    sets_in_a_child_of_vfork,
    executes,
    executed,
    shares_memory,
);

/// Sets over and over while `body` runs; none is refused.
fn while_setting(generation: u64, body: impl FnOnce()) -> u64 {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, SeqCst);
        }
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let setter = scope.spawn(|| {
            let mut generation = generation;
            while !stop.load(SeqCst) {
                generation += 1;
                set(generation).unwrap_or_else(|error| panic!("set {generation}: {error}"));
                assert_all(generation);
            }
            generation
        });
        let stop = Stop(&stop);
        body();
        drop(stop);
        setter.join().expect("the setter does not panic")
    })
}

/// `posix_spawn` blocks every signal of its thread, and of its child, until the child has begun.
fn spawns() {
    let sets = while_setting(0, || {
        among_readers(1, || {
            for _ in 0..100 {
                let ended = Command::new("/bin/true").status().expect("/bin/true");
                assert!(ended.success(), "{ended}");
            }
        });
    });
    println!("{sets} sets among 100 children");
    if has_sites() {
        let last = immediate::status().last.expect("code was changed");
        assert_eq!(last.protocol, Protocol::Int3, "{:?}", last.rejected);
    }
}

/// The child runs in the memory, and on the stack, of the thread that waits for it; it traps like
/// everybody. It has the handlers of its parent at that moment, so the first set comes before.
fn vforks() {
    static READ: AtomicU64 = AtomicU64::new(0);
    among_readers(1, || set(1)).expect("every thread can trap");
    let sets = while_setting(1, || {
        for _ in 0..200 {
            #[allow(deprecated)] // it is what the test is about
            // SAFETY: the child reads sites, counts, and ends without returning from this function.
            match unsafe { libc::vfork() } {
                -1 => panic!("vfork: {}", std::io::Error::last_os_error()),
                0 => {
                    for _ in 0..2_000 {
                        std::hint::black_box(read());
                        READ.fetch_add(1, SeqCst);
                    }
                    // SAFETY: ends the child alone.
                    unsafe { libc::_exit(0) };
                }
                process => assert_eq!(wait(process), 0, "the child ends by itself"),
            }
        }
    });
    println!("{sets} sets, {} rounds of reads in children of vfork", READ.load(SeqCst));
    assert_eq!(READ.load(SeqCst), 200 * 2_000);
}

/// Has one thread of its own, and another runs in the same memory.
fn sets_in_a_child_of_vfork() {
    static PROTOCOL: AtomicU64 = AtomicU64::new(0);
    set(1).expect("one thread");
    #[allow(deprecated)] // it is what the test is about
    // SAFETY: the child sets and ends without returning from this function; this thread waits.
    match unsafe { libc::vfork() } {
        -1 => panic!("vfork: {}", std::io::Error::last_os_error()),
        0 => {
            let done = set(2).is_ok();
            let single =
                immediate::status().last.is_some_and(|last| last.protocol == Protocol::Single);
            PROTOCOL.store(1 + 2 * u64::from(done) + 4 * u64::from(single), SeqCst);
            // SAFETY: ends the child alone.
            unsafe { libc::_exit(0) };
        }
        process => assert_eq!(wait(process), 0, "the child ends by itself"),
    }
    if has_sites() {
        assert_eq!(PROTOCOL.load(SeqCst), 3, "done, and not as the only thread");
    }
    assert_all(2);
}

fn wait(process: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: the child is ours.
    let ended = unsafe { libc::waitpid(process, &raw mut status, libc::__WALL) };
    assert_eq!(ended, process, "waitpid: {}", std::io::Error::last_os_error());
    status
}

/// The program replaces itself in the middle of sets; the new one begins with what was built in.
fn executes() {
    use std::os::unix::process::CommandExt;
    while_setting(0, || {
        among_readers(2, || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let own = std::env::current_exe().expect("the path of this program");
            let error = Command::new(own).env("IMMEDIATE_TEST_SCENARIO", "executed").exec();
            panic!("exec: {error}");
        });
    });
}

fn executed() {
    assert_all(0);
    let went = among_readers(2, || sets(&mut 0, 50));
    assert_eq!(went.refused, 0);
    println!("set anew");
}

/// A process of its own that shares the memory: `membarrier` reaches it, for it goes by the memory,
/// and it has the handler if it was made after the first set.
fn shares_memory() {
    static STOP: AtomicBool = AtomicBool::new(false);
    static ROUNDS: AtomicU64 = AtomicU64::new(0);
    extern "C" fn look(_: *mut libc::c_void) -> libc::c_int {
        let mut reader = Reader::new();
        while !STOP.load(SeqCst) {
            reader.look();
            ROUNDS.fetch_add(1, SeqCst);
        }
        0
    }
    among_readers(1, || {
        set(1).expect("every thread can trap");
        let mut stack = vec![0_u128; 16 * 1024];
        let top = stack.as_mut_ptr_range().end;
        // SAFETY: the child runs a function that reads, on a stack that outlives it; it is waited for.
        let process = unsafe {
            libc::clone(look, top.cast(), libc::CLONE_VM | libc::SIGCHLD, std::ptr::null_mut())
        };
        assert!(process > 0, "clone: {}", std::io::Error::last_os_error());
        while ROUNDS.load(SeqCst) < 100 {
            std::thread::yield_now();
        }
        let went = sets(&mut 1, 2_000);
        STOP.store(true, SeqCst);
        assert_eq!(wait(process), 0, "it ends by itself");
        assert_eq!(went.refused, 0);
        println!("{} rounds in the other process", ROUNDS.load(SeqCst));
        drop(stack);
    });
}

#[test]
fn children_by_posix_spawn_are_no_hindrance() {
    child::succeed("spawns", &[]);
}

#[test]
fn a_child_of_vfork_reads() {
    child::succeed("vforks", &[("IMMEDIATE_PROTOCOL", "int3")]);
    child::succeed("vforks", &[("IMMEDIATE_PROTOCOL", "quadword")]);
    child::succeed("sets_in_a_child_of_vfork", &[]);
}

#[test]
fn a_program_that_replaces_itself_begins_anew() {
    let ended = child::run("executes", &[]);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(ended.out.contains("set anew"), "{ended:#?}");
}

#[test]
fn a_process_that_shares_the_memory_reads() {
    child::succeed("shares_memory", &[("IMMEDIATE_PROTOCOL", "int3")]);
    child::succeed("shares_memory", &[("IMMEDIATE_PROTOCOL", "quadword")]);
}
