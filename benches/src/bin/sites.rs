//! Sets of variables with 1 to 100,000 sites, while 0 to 15 threads run through them; the system calls
//! of such a set on their own; and the crate `static-keys` with as many sites.
//!
//! The sites are emitted by the assembler, with the bytes and the records that the templates of both
//! libraries have: macros would keep the compiler busy for minutes. Each one jumps, when it is on,
//! to the next, so that a thread comes to all of them whether they are on or off.

#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(immediate_no_patching)))]
mod sites {
    use std::io;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
    use std::thread::JoinHandle;
    use std::time::{Duration, Instant};

    use immediate::{Immediate, immediate};
    use immediate_benches::alternate::Middle;
    use immediate_benches::system_calls::{self, Calls, Text, count_threads, look_at_threads};
    use immediate_benches::worker;
    use static_keys::{StaticFalseKey, new_static_false_key};

    /// A variable and a key with `$count` sites each, and the function through all of the variable's.
    macro_rules! sites {
        ($count:literal, $variable:ident, $key:ident, $run:ident, $run_keys:ident) => {
            #[immediate]
            static $variable: Immediate<bool> = Immediate::new(false);
            #[used]
            static $key: StaticFalseKey = new_static_false_key();

            std::arch::global_asm!(
                ".pushsection .text.{run},\"ax\",@progbits",
                ".p2align 6",
                ".globl {run}",
                ".type {run},@function",
                "{run}:",
                "22:",
                ".rept {count}",
                ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x0f, 0x1f, 0x00",
                ".endr",
                "ret",
                ".size {run}, . - {run}",
                ".popsection",
                ".pushsection immediate_sites_0_1_0,\"aR\",@progbits",
                ".balign 4",
                ".set immediate_benches_place, 0",
                ".rept {count}",
                ".long 22b + 8 * immediate_benches_place - .",
                ".long {variable}@GOTPCREL + 1",
                ".long 22b + 8 * immediate_benches_place + 8 - .",
                ".set immediate_benches_place, immediate_benches_place + 1",
                ".endr",
                ".popsection",
                ".pushsection .text.{run_keys},\"ax\",@progbits",
                ".p2align 6",
                ".globl {run_keys}",
                ".type {run_keys},@function",
                "{run_keys}:",
                "23:",
                ".rept {count}",
                ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x0f, 0x1f, 0x00",
                ".endr",
                "ret",
                ".size {run_keys}, . - {run_keys}",
                ".popsection",
                concat!(".pushsection ", static_keys::os_static_key_sec_name_attr!()),
                ".balign 8",
                ".set immediate_benches_place, 0",
                ".rept {count}",
                ".quad 23b + 8 * immediate_benches_place - .",
                ".quad 23b + 8 * immediate_benches_place + 8 - .",
                ".quad {key} - .",
                ".set immediate_benches_place, immediate_benches_place + 1",
                ".endr",
                ".popsection",
                count = const $count,
                variable = sym $variable,
                key = sym $key,
                run = sym $run,
                run_keys = sym $run_keys,
            );
        };
    }

    unsafe extern "C" {
        fn immediate_benches_run_1();
        fn immediate_benches_run_2();
        fn immediate_benches_run_3();
        fn immediate_benches_run_4();
        fn immediate_benches_run_5();
        fn immediate_benches_keys_1();
        fn immediate_benches_keys_2();
        fn immediate_benches_keys_3();
        fn immediate_benches_keys_4();
        fn immediate_benches_keys_5();
    }

    sites!(1, ONE, KEY_1, immediate_benches_run_1, immediate_benches_keys_1);
    sites!(100, HUNDRED, KEY_2, immediate_benches_run_2, immediate_benches_keys_2);
    sites!(1_000, THOUSAND, KEY_3, immediate_benches_run_3, immediate_benches_keys_3);
    sites!(10_000, TEN_THOUSAND, KEY_4, immediate_benches_run_4, immediate_benches_keys_4);
    sites!(100_000, MANY, KEY_5, immediate_benches_run_5, immediate_benches_keys_5);

    type Run = unsafe extern "C" fn();

    /// A number of sites, the variable and the key that have them, and the way through them.
    struct Case {
        sites: usize,
        variable: &'static Immediate<bool>,
        key: &'static StaticFalseKey,
        run: Run,
        run_keys: Run,
    }

    const CASES: [Case; 5] = [
        Case {
            sites: 1,
            variable: &ONE,
            key: &KEY_1,
            run: immediate_benches_run_1,
            run_keys: immediate_benches_keys_1,
        },
        Case {
            sites: 100,
            variable: &HUNDRED,
            key: &KEY_2,
            run: immediate_benches_run_2,
            run_keys: immediate_benches_keys_2,
        },
        Case {
            sites: 1_000,
            variable: &THOUSAND,
            key: &KEY_3,
            run: immediate_benches_run_3,
            run_keys: immediate_benches_keys_3,
        },
        Case {
            sites: 10_000,
            variable: &TEN_THOUSAND,
            key: &KEY_4,
            run: immediate_benches_run_4,
            run_keys: immediate_benches_keys_4,
        },
        Case {
            sites: 100_000,
            variable: &MANY,
            key: &KEY_5,
            run: immediate_benches_run_5,
            run_keys: immediate_benches_keys_5,
        },
    ];

    /// Whether all sites behind `run` jump, or none does.
    fn all_jump(run: Run, sites: usize) -> Option<bool> {
        // SAFETY: so many sites of eight bytes stand there, and this thread changes them.
        let text = unsafe { std::slice::from_raw_parts(run as *const u8, 8 * sites) };
        let mut first = text.iter().step_by(8).map(|byte| *byte == 0xe9);
        let expected = first.next()?;
        first.all(|jumps| jumps == expected).then_some(expected)
    }

    /// What the threads run through while they are asked to.
    static THROUGH: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
    static END: AtomicBool = AtomicBool::new(false);

    struct Runner {
        thread: JoinHandle<()>,
        passes: &'static AtomicU64,
        rests: &'static AtomicBool,
    }

    impl Runner {
        fn start() -> Self {
            let passes: &'static AtomicU64 = Box::leak(Box::default());
            let rests: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
            let thread = std::thread::spawn(move || {
                while !END.load(Ordering::Acquire) {
                    let run = THROUGH.load(Ordering::Acquire);
                    if run.is_null() {
                        rests.store(true, Ordering::Release);
                        std::thread::park_timeout(Duration::from_millis(50));
                        continue;
                    }
                    rests.store(false, Ordering::Release);
                    // SAFETY: a function of `CASES`, which takes nothing and gives nothing.
                    unsafe { std::mem::transmute::<*mut (), Run>(run)() };
                    passes.fetch_add(1, Ordering::Release);
                }
            });
            Runner { thread, passes, rests }
        }
    }

    /// Does `work` while every runner runs through `run`.
    fn meanwhile<R>(runners: &[Runner], run: Run, work: impl FnOnce() -> R) -> R {
        let before: Vec<u64> =
            runners.iter().map(|runner| runner.passes.load(Ordering::Acquire)).collect();
        THROUGH.store(run as *mut (), Ordering::Release);
        for (runner, before) in runners.iter().zip(before) {
            runner.thread.thread().unpark();
            while runner.passes.load(Ordering::Acquire) == before {
                std::thread::yield_now();
            }
        }
        let result = work();
        THROUGH.store(std::ptr::null_mut(), Ordering::Release);
        for runner in runners {
            while !runner.rests.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
        result
    }

    /// Repeats `work` until the time is over, once at least; the median in nanoseconds.
    fn median(time: Duration, mut work: impl FnMut()) -> f64 {
        let start = Instant::now();
        let mut times = Vec::new();
        loop {
            let before = Instant::now();
            work();
            times.push(before.elapsed().as_nanos() as f64);
            if start.elapsed() >= time {
                return Middle::of(times).median;
            }
        }
    }

    /// Sets a variable. A machine that is busier than a protocol allows for may refuse; then again.
    fn set(variable: &Immediate<bool>, value: bool) {
        let mut last = Ok(());
        for _ in 0..TRIES {
            last = variable.set(value);
            if last.is_ok() {
                return;
            }
        }
        last.expect("the variable can be set");
    }

    /// How often a set is tried.
    const TRIES: u32 = 100;

    fn time(word: &str) -> Option<Duration> {
        word.parse().ok().map(Duration::from_micros)
    }

    /// Sets the variables: `threads COUNT`, `set SITES MICROSECONDS`, `calls KIND MICROSECONDS`.
    fn immediates() -> io::Result<()> {
        system_calls::be_patient();
        // The first set of a process does more than the others.
        for on in [true, false] {
            CASES[0].variable.set(on).expect("the variable can be set");
        }
        let mut runners: Vec<Runner> = Vec::new();
        let text = Text::page_of(CASES[0].run as usize);
        let mut calls = Calls::new(text);
        let mut value = false;
        let result = worker::answer(
            &immediate::status().to_string().replace('\n', "; "),
            |words| match words {
                ["threads", count] => {
                    END.store(true, Ordering::Release);
                    for runner in runners.drain(..) {
                        runner.thread.thread().unpark();
                        runner.thread.join().expect("a runner ends");
                    }
                    END.store(false, Ordering::Release);
                    runners.extend((0..count.parse().ok()?).map(|_| Runner::start()));
                    calls.prepare(runners.len());
                    Some(String::from("ready"))
                }
                ["set", sites, time_] => {
                    let sites: usize = sites.parse().ok()?;
                    let case = CASES.iter().find(|case| case.sites == sites)?;
                    let time = time(time_)?;
                    let median = meanwhile(&runners, case.run, || {
                        median(time, || {
                            value = !value;
                            set(case.variable, value);
                        })
                    });
                    assert_eq!(all_jump(case.run, case.sites), Some(value), "all have changed");
                    if value {
                        value = false;
                        set(case.variable, value);
                    }
                    Some(median.to_string())
                }
                ["calls", kind, time_] => {
                    let time = time(time_)?;
                    let calls = &calls;
                    meanwhile(&runners, CASES[0].run, || match *kind {
                        "single" => Some(median(time, || text.calls(0))),
                        "int3" => Some(median(time, || text.calls(3))),
                        "quadword" => Some(median(time, || text.calls(1))),
                        "stop_world" => {
                            calls.prepare_to_stop();
                            Some(median(time, || calls.stop_world()))
                        }
                        "int3_all" => Some(median(time, || {
                            look_at_threads(&calls.others);
                            text.calls(3);
                        })),
                        "quadword_all" => Some(median(time, || {
                            count_threads();
                            text.calls(1);
                        })),
                        _ => None,
                    })
                    .map(|median| median.to_string())
                }
                _ => None,
            },
        );
        END.store(true, Ordering::Release);
        for runner in runners {
            runner.thread.thread().unpark();
            runner.thread.join().expect("a runner ends");
        }
        result
    }

    /// Sets the keys, in a process with one thread: `set SITES MICROSECONDS`.
    fn keys() -> io::Result<()> {
        static_keys::global_init();
        let set = |case: &Case, on| {
            // SAFETY: initialised above, and the process has one thread.
            unsafe { if on { case.key.enable() } else { case.key.disable() } }
        };
        worker::answer(&format!("{} entries", static_keys::jump_entries_count()), |words| {
            let ["set", sites, time_] = words else { return None };
            let sites: usize = sites.parse().ok()?;
            let case = CASES.iter().find(|case| case.sites == sites)?;
            let mut value = false;
            let median = median(time(time_)?, || {
                value = !value;
                set(case, value);
            });
            assert_eq!(all_jump(case.run_keys, case.sites), Some(value), "all have changed");
            // SAFETY: takes nothing and gives nothing.
            unsafe { (case.run_keys)() };
            if value {
                set(case, false);
            }
            Some(median.to_string())
        })
    }

    pub(crate) fn serve(role: &str) -> io::Result<()> {
        if role == "keys" { keys() } else { immediates() }
    }
}

fn main() -> std::io::Result<()> {
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(immediate_no_patching)))]
    if let Some(role) = immediate_benches::worker::role() {
        return sites::serve(&role);
    }
    println!("run by `report`");
    Ok(())
}
