//! A token between two processes over pipes, as in 2009, with a clock call in each turn and markers on
//! the way; and the clock calls on their own, as in 2019, as the scale for what one check costs.

#![allow(unsafe_code)]

use std::hint::black_box;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use immediate::{Immediate, immediate, immediate_if};
use immediate_benches::processors;
use immediate_benches::worker::{self, Worker};

use crate::{Run, turns};

pub(crate) const ROLE: &str = "token";

pub(crate) const CONTENDERS: [&str; 3] = ["compiled_out", "immediate", "global"];
pub(crate) const CLOCKS: [&str; 6] =
    ["syscall", "libc", "vdso", "vdso_immediate", "vdso_atomic", "vdso_again"];

#[immediate]
static BEFORE: Immediate<bool> = Immediate::new(false);
#[immediate]
static BEHIND: Immediate<bool> = Immediate::new(false);
static GLOBAL_BEFORE: AtomicBool = AtomicBool::new(false);
static GLOBAL_BEHIND: AtomicBool = AtomicBool::new(false);

/// Turns of the token in one run, and clock calls.
const TURNS: u32 = 500;
const READINGS: u32 = 10_000;

type Clock = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int;

unsafe extern "C" fn by_system_call(
    clock: libc::clockid_t,
    time: *mut libc::timespec,
) -> libc::c_int {
    // SAFETY: by the caller.
    unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as libc::c_int }
}

/// The kernel's own function in this process.
fn vdso() -> Option<Clock> {
    // SAFETY: names that end with zeros; the function has this type (`vdso(7)`), and its object is
    // never unloaded.
    unsafe {
        let object = libc::dlopen(c"linux-vdso.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if object.is_null() {
            return None;
        }
        let function = libc::dlsym(object, c"__vdso_clock_gettime".as_ptr());
        (!function.is_null()).then(|| std::mem::transmute::<*mut libc::c_void, Clock>(function))
    }
}

#[cold]
#[inline(never)]
fn mark(what: u64) {
    black_box(what);
}

#[inline(always)]
fn read(clock: Clock) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes into memory that we own.
    unsafe { clock(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_nsec as u64
}

#[inline(never)]
fn readings(clock: Clock, check: impl Fn() -> bool) -> f64 {
    let start = Instant::now();
    for _ in 0..READINGS {
        if check() {
            mark(0);
        }
        black_box(read(clock));
    }
    start.elapsed().as_nanos() as f64 / f64::from(READINGS)
}

/// One end of the two pipes.
struct End {
    from: PipeReader,
    to: PipeWriter,
    clock: Clock,
}

macro_rules! turns {
    ($($name:ident: $before:expr, $behind:expr;)*) => {
        $(
            /// Takes the token, looks at the clock, passes the token on.
            #[inline(never)]
            fn $name(end: &mut End, token: &mut [u8; 1]) -> io::Result<()> {
                end.from.read_exact(token)?;
                let time = read(end.clock);
                if $before {
                    mark(time);
                }
                end.to.write_all(token)?;
                if $behind {
                    mark(time);
                }
                Ok(())
            }
        )*
    };
}

turns! {
    compiled_out: false, false;
    immediate: immediate_if!(BEFORE), immediate_if!(BEHIND);
    global: GLOBAL_BEFORE.load(Ordering::Relaxed), GLOBAL_BEHIND.load(Ordering::Relaxed);
}

type Turn = fn(&mut End, &mut [u8; 1]) -> io::Result<()>;

/// Both processes take the same kind of turn: the token says which.
const KINDS: [Turn; 3] = [compiled_out, immediate, global];

/// The other process: as the token says, until the pipe is closed.
fn partner(mut end: End) -> io::Result<()> {
    let mut token = [0];
    loop {
        end.from.read_exact(&mut token)?;
        let kind = KINDS[usize::from(token[0])];
        end.to.write_all(&token)?;
        for _ in 0..TURNS {
            kind(&mut end, &mut token)?;
        }
    }
}

fn play(end: &mut End, kind: usize) -> io::Result<f64> {
    let mut token = [kind as u8];
    end.to.write_all(&token)?;
    end.from.read_exact(&mut token)?;
    let start = Instant::now();
    end.to.write_all(&token)?;
    for _ in 1..TURNS {
        KINDS[kind](end, &mut token)?;
    }
    end.from.read_exact(&mut token)?;
    Ok(start.elapsed().as_nanos() as f64 / f64::from(2 * TURNS))
}

/// Answers `token CONTENDER` and `clock CONTENDER` with nanoseconds in a turn or a call.
pub(crate) fn serve() -> io::Result<()> {
    processors::keep_to_one();
    black_box(&GLOBAL_BEFORE).store(false, Ordering::Relaxed);
    black_box(&GLOBAL_BEHIND).store(false, Ordering::Relaxed);
    let libc: Clock = libc::clock_gettime;
    let vdso = vdso().unwrap_or(libc);
    let (here, there) = (io::pipe()?, io::pipe()?);
    // SAFETY: the process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop((here.0, there.1));
        // Ends when the pipe is closed.
        let _ = partner(End { from: there.0, to: here.1, clock: vdso });
        std::process::exit(0);
    }
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    drop((here.1, there.0));
    let mut end = End { from: here.0, to: there.1, clock: vdso };
    let result = worker::answer("ready", |words| {
        let time = match words {
            ["token", name] => {
                let kind = CONTENDERS.iter().position(|contender| contender == name)?;
                play(&mut end, kind).ok()?
            }
            ["clock", "syscall"] => readings(by_system_call, || false),
            ["clock", "libc"] => readings(libc, || false),
            ["clock", "vdso" | "vdso_again"] => readings(vdso, || false),
            ["clock", "vdso_immediate"] => readings(vdso, || immediate_if!(BEFORE)),
            ["clock", "vdso_atomic"] => readings(vdso, || GLOBAL_BEFORE.load(Ordering::Relaxed)),
            _ => return None,
        };
        Some(time.to_string())
    });
    drop(end);
    // SAFETY: waits for the child that was made above.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    result
}

pub(crate) fn run(run: &mut Run<'_>, seconds: f64) {
    let mut worker = Worker::again(ROLE, &[]);
    run.repeat(seconds, |figures, round| {
        for place in turns(round, CONTENDERS.len()) {
            let name = CONTENDERS[place];
            figures.add(format!("token.{name}_ns"), worker.number(&format!("token {name}")));
        }
        for place in turns(round, CLOCKS.len()) {
            let name = CLOCKS[place];
            figures.add(format!("clock.{name}_ns"), worker.number(&format!("clock {name}")));
        }
    });
}
