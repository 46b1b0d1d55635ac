//! What does setting a variable with 1,000 sites cost in a program with one thread? Target: at
//! least 500 times faster than the crate `static-keys` with 1,000 sites of one key in the same run.
//!
//! Each contender is a process of its own with one thread: `static-keys` may only be used so, and
//! it replaces the mapping of every page that it changes, which would slow the other down.

#![allow(unsafe_code)]

use std::hint::black_box;

use criterion::Criterion;
use immediate::{Immediate, immediate, immediate_if};
use immediate_benches::alternate::{Effort, Target, alternate, print_ratio};
use immediate_benches::hundred;
use immediate_benches::worker::{self, Worker};
use static_keys::{define_static_key_false, static_branch_unlikely};

#[immediate]
static SWITCH: Immediate<bool> = Immediate::new(false);

define_static_key_false!(KEY);

// Ten functions that differ in a constant, with a hundred sites each, make a thousand.

#[inline(never)]
fn hundred_immediates<const N: usize>(mut sum: usize) -> usize {
    hundred! { if immediate_if!(SWITCH) { sum += N } }
    sum
}

#[inline(never)]
fn hundred_keys<const N: usize>(mut sum: usize) -> usize {
    hundred! { if static_branch_unlikely!(KEY) { sum += N } }
    sum
}

/// Runs a function of the ten after the other, from `sum` on.
macro_rules! all {
    ($function:ident, $sum:expr) => {{
        let sum = $function::<1>($sum) + $function::<2>($sum) + $function::<3>($sum);
        let sum = sum + $function::<4>($sum) + $function::<5>($sum) + $function::<6>($sum);
        let sum = sum + $function::<7>($sum) + $function::<8>($sum) + $function::<9>($sum);
        sum + $function::<10>($sum)
    }};
}

/// What all sites add up to when they are on.
const ON: usize = 100 * (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10);

fn immediates() -> usize {
    all!(hundred_immediates, black_box(0))
}

fn keys() -> usize {
    all!(hundred_keys, black_box(0))
}

/// Sets all sites of one contender.
type Setter = Box<dyn FnMut(bool)>;

fn serve(role: &str) -> std::io::Result<()> {
    let greeting;
    let (mut set_immediate, mut set_key): (Setter, Setter);
    if role == IMMEDIATE {
        assert_eq!(immediates(), 0);
        set_immediate = Box::new(|on| SWITCH.set(on).expect("the variable can be set"));
        set_immediate(true);
        assert_eq!(immediates(), ON, "every site has changed");
        set_immediate(false);
        assert_eq!(immediates(), 0, "every site has changed back");
        let status = immediate::status();
        let protocol = status.protocol.map_or("no protocol", |protocol| protocol.name());
        assert!(status.target == "plain" || protocol == "single", "{status}");
        greeting = format!("immediate: {} sites, protocol {protocol}", SWITCH.site_count());
        set_key = Box::new(|_| ());
    } else {
        static_keys::global_init();
        assert_eq!(keys(), 0);
        set_key = Box::new(|on| {
            // SAFETY: initialised above, and the process has one thread.
            unsafe { if on { KEY.enable() } else { KEY.disable() } }
        });
        set_key(true);
        assert_eq!(keys(), ON, "every site has changed");
        set_key(false);
        assert_eq!(keys(), 0, "every site has changed back");
        // Its count includes sites of the crate's own.
        greeting = format!("static-keys: {} entries", static_keys::jump_entries_count());
        set_immediate = Box::new(|_| ());
    }
    let mut value = false;
    let mut next = || {
        value = !value;
        value
    };
    let mut set_immediate = |sets| {
        (0..sets).for_each(|_| set_immediate(next()));
        true
    };
    let mut other = false;
    let mut set_key = |sets| {
        for _ in 0..sets {
            other = !other;
            set_key(other);
        }
        true
    };
    worker::serve(&greeting, &mut [(IMMEDIATE, &mut set_immediate), (STATIC_KEYS, &mut set_key)])
}

const IMMEDIATE: &str = "immediate";
const STATIC_KEYS: &str = "static-keys";
/// Sets in one sample of each.
const SETS: [u64; 2] = [100, 2];

fn main() -> std::io::Result<()> {
    if let Some(role) = worker::role() {
        return serve(&role);
    }
    let effort = Effort::asked();
    let mut criterion = Criterion::default().configure_from_args();
    let mut workers = [IMMEDIATE, STATIC_KEYS]
        .map(|role| (role, (effort != Effort::None).then(|| Worker::again(role, &[]))));
    let mut group = criterion.benchmark_group("set 1,000 sites, single-threaded");
    group.sample_size(10);
    for (role, worker) in &mut workers {
        group.bench_function(*role, |bencher| {
            bencher.iter_custom(|sets| {
                worker.as_mut().expect("started unless listing").time(role, sets)
            });
        });
    }
    group.finish();
    if let [(_, Some(immediate)), (_, Some(keys))] = &mut workers {
        println!("{}\n{}", immediate.greeting(), keys.greeting());
        let rounds = if effort == Effort::Full { 51 } else { 3 };
        let rounds = alternate(2, rounds, |contender| match contender {
            0 => immediate.time(IMMEDIATE, SETS[0]),
            _ => keys.time(STATIC_KEYS, SETS[1]),
        });
        println!("one set, immediate: {} µs", rounds.microseconds(0, SETS[0]));
        println!("one set, static-keys: {} µs", rounds.microseconds(1, SETS[1]));
        let ratio = rounds.ratio(1, 0).times(SETS[0] as f64 / SETS[1] as f64);
        let target = Some(Target::AtLeast(500.0));
        print_ratio("set of 1,000 sites, static-keys / immediate", ratio, target);
    }
    criterion.final_summary();
    Ok(())
}
