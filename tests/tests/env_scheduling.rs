//! A reader that nothing but the kernel takes the processor from (`SCHED_FIFO`), on a processor of its
//! own or on the one that the setter has to share with it. What would go wrong: somebody who waits by
//! spinning for a thread that is never given the processor, for ever.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use immediate::Protocol;
use immediate_tests::{child, has_sites};

#[path = "environment/mod.rs"]
mod environment;

use environment::{Reader, sets};

immediate_tests::scenarios!(one_processor_for_all, one_for_the_reader);

/// Binds this thread to one of the processors that it may run on.
fn bind(index: usize) {
    // SAFETY: a zeroed set is valid; asks for and sets what this thread may run on.
    unsafe {
        let mut all: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&all), &raw mut all), 0);
        let usable: Vec<usize> =
            (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &all)).collect();
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(usable[index % usable.len()], &mut one);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&one), &raw const one), 0);
    }
}

/// Says so and gives `false` where it is not allowed.
fn go_first() -> bool {
    let priority = libc::sched_param { sched_priority: 10 };
    // SAFETY: changes how this thread is scheduled.
    let done = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) } == 0;
    if !done {
        println!("not as SCHED_FIFO: {}", std::io::Error::last_os_error());
    }
    done
}

/// Sets while a thread that goes first reads, with a rest now and then, for the sake of whoever shares
/// the machine.
fn sets_against_it(readers_processor: usize, times: u64) {
    let stop = AtomicBool::new(false);
    let goes = AtomicBool::new(false);
    std::thread::scope(|scope| {
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, SeqCst);
            }
        }
        let _stop = Stop(&stop);
        scope.spawn(|| {
            bind(readers_processor);
            go_first();
            let mut reader = Reader::new();
            let mut rounds = 0_u32;
            while !stop.load(SeqCst) {
                reader.look();
                goes.store(true, SeqCst);
                rounds += 1;
                if rounds.is_multiple_of(100_000) {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }
        });
        while !goes.load(SeqCst) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let went = sets(&mut 0, times);
        assert_eq!(went.refused, 0);
        if let Ok(asked) = std::env::var("IMMEDIATE_PROTOCOL")
            && has_sites()
        {
            assert_eq!(went.protocols.iter().map(|one| one.name()).collect::<Vec<_>>(), [asked]);
        }
    });
}

fn one_processor_for_all() {
    bind(0);
    sets_against_it(0, 30);
}

fn one_for_the_reader() {
    bind(0);
    sets_against_it(1, 300);
}

#[test]
fn nobody_waits_for_ever() {
    for protocol in Protocol::CHOICES {
        let setting = [("IMMEDIATE_PROTOCOL", protocol.name())];
        child::succeed("one_processor_for_all", &setting);
        child::succeed("one_for_the_reader", &setting);
    }
}
