//! Linux.

pub mod barrier;
pub mod context;
mod emulator;
#[cfg(feature = "faults")]
pub mod faults;
pub mod flush;
pub mod mask;
pub mod stop;
mod task;
pub mod text;
pub mod threads;
pub mod trap;
#[cfg(any(target_arch = "powerpc", target_arch = "powerpc64", test))]
mod vdso;

/// The kernel's id of the calling thread.
#[allow(unsafe_code)]
pub(crate) fn own_id() -> i32 {
    // SAFETY: always succeeds, and needs no thread-local, which those of a library may not be yet.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// What is done on a signal.
#[allow(unsafe_code)]
pub(crate) fn action_of(signal: i32) -> Result<libc::sigaction, Failure> {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks for the action into memory that we own.
    if unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } == 0 {
        // SAFETY: written by the call that succeeded.
        Ok(unsafe { action.assume_init() })
    } else {
        Err(Failure::last("sigaction"))
    }
}

/// A system call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Name of the call, with the argument that matters.
    pub call: &'static str,
    /// `errno`.
    pub errno: i32,
}

impl Failure {
    /// The failure that a test asks for at this call.
    pub(crate) fn due(call: &'static str) -> Result<(), Failure> {
        cfg_select! {
            feature = "faults" => {
                faults::due().map_or(Ok(()), |errno| Err(Failure { call, errno }))
            }
            _ => {
                let _ = call;
                Ok(())
            }
        }
    }

    /// The failure of the call that has just returned -1 in this thread.
    pub(crate) fn last(call: &'static str) -> Self {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        Failure { call, errno }
    }
}

impl From<Failure> for std::io::Error {
    fn from(failure: Failure) -> Self {
        std::io::Error::from_raw_os_error(failure.errno)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}: {}", self.call, std::io::Error::from_raw_os_error(self.errno))
    }
}
