//! A program to operate: requests, a log level, a mode, a limit.
//!
//! `cargo run -p immediate-cli --example server`, then `immediate list` in another terminal. It prints
//! one line when it can be found, and ends when its standard input does.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use immediate::{
    Immediate, ImmediateValue, control, immediate, immediate_if, immediate_read, profile,
};

/// Whether each request is reported.
#[immediate(name = "server::TRACE")]
static TRACE: Immediate<bool> = Immediate::new(false);

/// The most bytes of a request.
#[immediate(name = "server::LIMIT")]
static LIMIT: Immediate<u16> = Immediate::new(4096);

/// How requests are answered.
#[immediate(name = "server::MODE")]
static MODE: Immediate<Mode> = Immediate::new(Mode::Full);

/// Set by SIGUSR1.
#[immediate(name = "server::PAUSED")]
static PAUSED: Immediate<bool> = Immediate::new(false);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ImmediateValue)]
#[repr(u8)]
enum Mode {
    Full,
    Degraded,
    Closed,
}

fn serve(request: u64) -> u64 {
    profile::hit!(TRACE);
    if immediate_if!(TRACE) {
        eprintln!("request {request}");
    }
    if immediate_if!(MODE, |mode| matches!(mode, Mode::Closed)) {
        return 0;
    }
    request % u64::from(immediate_read!(LIMIT))
}

fn main() -> std::io::Result<()> {
    const SIGUSR1: i32 = 10;
    let control = control::serve()?;
    let _toggle = control::toggle_on(SIGUSR1, &PAUSED)?;
    println!("serving at {}", control.path().display());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut request = 0;
            while !is_over.load(Ordering::Relaxed) {
                if !immediate_if!(PAUSED) {
                    request += 1;
                    std::hint::black_box(serve(request));
                }
                thread::sleep(Duration::from_millis(5));
            }
        });
        let ended = std::io::stdin().read_to_end(&mut Vec::new());
        is_over.store(true, Ordering::Relaxed);
        ended.map(|_| ())
    })
}
