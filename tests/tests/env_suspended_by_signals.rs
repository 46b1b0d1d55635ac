//! A collector suspends threads by signals, as those of many runtimes do: it sends one to the thread that
//! sets, and goes on only when that thread has come into its handler. What would go wrong: the thread
//! has stopped the world, with the collector in it, and waits in the handler for the collector, for
//! ever.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use immediate_tests::{child, signals};

#[path = "environment/mod.rs"]
mod environment;

use environment::sets;

immediate_tests::scenarios!(collected);

static SUSPENDED: AtomicBool = AtomicBool::new(false);
static RESUME: AtomicBool = AtomicBool::new(false);
static COLLECTIONS: AtomicU64 = AtomicU64::new(0);

extern "C" fn suspend(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    SUSPENDED.store(true, SeqCst);
    while !RESUME.load(SeqCst) {
        std::hint::spin_loop();
    }
    SUSPENDED.store(false, SeqCst);
}

fn collected() {
    signals::install(libc::SIGUSR1, suspend, signals::set_of(&[]), libc::SA_RESTART);
    let setter = signals::own_id();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(SeqCst) {
                RESUME.store(false, SeqCst);
                signals::strike(setter, libc::SIGUSR1);
                while !SUSPENDED.load(SeqCst) {
                    std::hint::spin_loop();
                }
                RESUME.store(true, SeqCst);
                while SUSPENDED.load(SeqCst) {
                    std::hint::spin_loop();
                }
                COLLECTIONS.fetch_add(1, SeqCst);
            }
        });
        let mut generation = 0;
        while COLLECTIONS.load(SeqCst) < 200 || generation < 200 {
            assert_eq!(sets(&mut generation, 20).refused, 0);
        }
        stop.store(true, SeqCst);
    });
    println!("{} collections", COLLECTIONS.load(SeqCst));
}

#[test]
fn the_one_who_sets_and_a_collector_do_not_wait_for_each_other() {
    child::succeed("collected", &[("IMMEDIATE_PROTOCOL", "stop-world")]);
    child::succeed("collected", &[("IMMEDIATE_PROTOCOL", "int3")]);
}
