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

/// Registers the process, without which [`synchronise`] is refused, and tries the real call.
///
/// # Errors
///
/// `ENOSYS` or `EINVAL` where the kernel lacks it, `EPERM` and others where a filter forbids it.
pub fn prepare() -> Result<(), Failure> {
    membarrier(
        REGISTER_PRIVATE_EXPEDITED_SYNC_CORE,
        "membarrier(REGISTER_PRIVATE_EXPEDITED_SYNC_CORE)",
    )?;
    synchronise()
}

/// Every processor that runs this process serialises before this returns.
///
/// # Errors
///
/// The failure of the call; nothing is known of the other processors then.
pub fn synchronise() -> Result<(), Failure> {
    membarrier(PRIVATE_EXPEDITED_SYNC_CORE, "membarrier(PRIVATE_EXPEDITED_SYNC_CORE)")
}
