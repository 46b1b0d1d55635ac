//! `membarrier` with `SYNC_CORE`: when it returns, every thread of the process that was running
//! has executed a serialising instruction, and every other will before it runs user code again
//! (`membarrier(2)`, `MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE`, Linux 4.16).

#![allow(unsafe_code)]

use super::Failure;

// From linux/membarrier.h.
const PRIVATE_EXPEDITED_SYNC_CORE: libc::c_int = 1 << 5;
const REGISTER_PRIVATE_EXPEDITED_SYNC_CORE: libc::c_int = 1 << 6;

/// Tries of a call that the kernel refused for want of memory, which passes.
const TRIES: usize = 8;

fn membarrier(command: libc::c_int, name: &'static str) -> Result<(), Failure> {
    let mut failure = Failure { call: name, errno: libc::ENOMEM };
    Failure::due(name)?;
    for _ in 0..TRIES {
        // SAFETY: the call takes three integers and touches no memory of ours.
        if unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } == 0 {
            return Ok(());
        }
        failure = Failure::last(name);
        if failure.errno != libc::ENOMEM && failure.errno != libc::EAGAIN {
            break;
        }
    }
    Err(failure)
}

const REGISTER: &str = "membarrier(REGISTER_PRIVATE_EXPEDITED_SYNC_CORE)";

/// Registers the process, without which [`synchronise`] is refused, and tries the real call.
///
/// # Errors
///
/// `ENOSYS` or `EINVAL` where the kernel lacks it, `EPERM` and others where a filter forbids it,
/// also one that kills.
pub fn prepare() -> Result<(), Failure> {
    if surroundings().is_filtered() && kills() {
        return Err(Failure { call: REGISTER, errno: libc::EPERM });
    }
    membarrier(REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, REGISTER)?;
    synchronise()
}

/// What a barrier that was prepared holds for: this process, and this thread's mode of filtering
/// system calls (`PR_GET_SECCOMP` in `prctl(2)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings {
    process: u32,
    filtering: libc::c_int,
}

impl Surroundings {
    /// Whether a filter watches the calls of this thread, or that is not told.
    #[must_use]
    pub fn is_filtered(self) -> bool {
        self.filtering != 0
    }
}

/// Where this thread is now.
#[must_use]
pub fn surroundings() -> Surroundings {
    // SAFETY: asks for a number; refused, it is another number.
    let filtering = unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) };
    Surroundings { process: std::process::id(), filtering }
}

/// Whether the calls kill whoever makes them, as some filters do: a child tries.
///
/// The child is made without the C library's `fork`: it makes the two calls and ends, and no handler
/// of the program is called for it, not even SIGCHLD's.
fn kills() -> bool {
    // SAFETY: the child, which has a copy of the memory and this thread alone, makes system calls
    // only; the parent waits for it.
    unsafe {
        let child = libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0);
        if child == 0 {
            let register = REGISTER_PRIVATE_EXPEDITED_SYNC_CORE;
            libc::syscall(libc::SYS_membarrier, register, 0, 0);
            libc::syscall(libc::SYS_membarrier, PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
            libc::syscall(libc::SYS_exit_group, 0);
        }
        if child < 0 {
            // An emulator that makes no such child has no filter of ours either. Where the filter or
            // a limit forbids it, nothing is known: the worse is taken for true.
            return Failure::last("clone").errno != libc::EINVAL;
        }
        let mut status = 0;
        loop {
            let ended = libc::waitpid(child as libc::pid_t, &raw mut status, libc::__WALL);
            if ended >= 0 || Failure::last("waitpid").errno != libc::EINTR {
                break;
            }
        }
        libc::WIFSIGNALED(status)
    }
}

/// Every processor that runs this process serialises before this returns.
///
/// # Errors
///
/// The failure of the call; nothing is known of the other processors then.
pub fn synchronise() -> Result<(), Failure> {
    membarrier(PRIVATE_EXPEDITED_SYNC_CORE, "membarrier(PRIVATE_EXPEDITED_SYNC_CORE)")
}
