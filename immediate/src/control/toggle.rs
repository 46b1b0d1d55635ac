//! A signal that flips a variable, for programs without a socket.

use std::io::{self, ErrorKind};
use std::thread::{self, JoinHandle};

use signal_hook::consts::FORBIDDEN;
use signal_hook::iterator::{Handle, Signals};

use super::signals;
use crate::module::report;
use crate::variable::Immediate;

/// A signal that flips a variable; ends when it is dropped. The signal is then ignored.
#[derive(Debug)]
#[must_use = "the signal has no effect any more when this is dropped"]
pub struct Toggle {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

/// Flips the variable each time the process gets the signal: `kill -USR1 PID`.
///
/// The set is made by a thread of its own, not by the signal handler. Signals that come faster than
/// it sets count as one. A child of `fork` has no such thread: the signal does nothing there. A set
/// that is refused is reported on standard error.
///
/// # Errors
///
/// The signal does not exist, cannot be handled, or is SIGTRAP, which sets need themselves.
///
/// ```no_run
/// use immediate::{Immediate, immediate};
///
/// #[immediate]
/// static TRACE: Immediate<bool> = Immediate::new(false);
///
/// # fn main() -> std::io::Result<()> {
/// let _toggle = immediate::control::toggle_on(10, &TRACE)?; // SIGUSR1
/// # Ok(())
/// # }
/// ```
pub fn toggle_on(signal: i32, variable: &'static Immediate<bool>) -> io::Result<Toggle> {
    if signal == libc::SIGTRAP || FORBIDDEN.contains(&signal) {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            format!("signal {signal} cannot toggle a variable; use one such as SIGUSR1"),
        ));
    }
    let mut signals = Signals::new([signal])?;
    let handle = signals.handle();
    let run = move || {
        signals::leave_to_the_program();
        for _ in signals.forever() {
            flip(variable);
        }
    };
    let thread = thread::Builder::new().name("immediate-toggle".into()).spawn(run)?;
    Ok(Toggle { handle, thread: Some(thread) })
}

fn flip(variable: &Immediate<bool>) {
    let guard = crate::batch::lock();
    if let Err(error) = guard.set(variable, !variable.get()) {
        report(&format!("{} is not toggled: {error}", variable.name()));
    }
}

impl Drop for Toggle {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
