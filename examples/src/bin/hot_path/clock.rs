//! How long a thread has worked, without the time during which it was off the processor: other
//! programs on the machine would otherwise be measured too.

use std::time::Duration;

/// Started by the thread that asks it.
pub(crate) struct Clock(Duration);

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock(now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        now() - self.0
    }
}

/// Processor time of this thread: its own work, its system calls, its traps.
#[cfg(target_os = "linux")]
fn now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.try_into().expect("processor time is not negative")
}

/// The time that passes.
#[cfg(not(target_os = "linux"))]
fn now() -> Duration {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGIN.get_or_init(std::time::Instant::now).elapsed()
}
