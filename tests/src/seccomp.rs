//! Filters of system calls, written by hand (`seccomp(2)`).

#![allow(unsafe_code)]

/// What becomes of a call.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// It returns this `errno`.
    Errno(i32),
    /// The thread gets SIGSYS, which ends the process.
    Trap,
    /// The process is killed.
    Kill,
}

// From linux/seccomp.h and linux/bpf_common.h.
const RET_ALLOW: u32 = 0x7fff_0000;
const RET_ERRNO: u32 = 0x0005_0000;
const RET_TRAP: u32 = 0x0003_0000;
const RET_KILL_PROCESS: u32 = 0x8000_0000;
const SET_MODE_FILTER: libc::c_long = 1;
const FILTER_FLAG_TSYNC: libc::c_long = 1;
const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_SET: u16 = 0x45;
const RETURN: u16 = 0x06;
/// Where the call's number and the low half of its arguments lie in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARGUMENTS: u32 = 16;

/// Which calls a filter is about.
#[derive(Clone, Copy, Debug)]
pub enum Calls {
    /// Every call with this number.
    All(libc::c_long),
    /// Those whose argument (by its place) has any of these bits.
    WithBits(libc::c_long, u32, u32),
}

/// Answers these calls so from now on, in every thread of the process.
///
/// # Panics
///
/// If the kernel takes no filter.
pub fn answer(calls: Calls, answer: Answer) {
    let verdict = match answer {
        Answer::Errno(errno) => RET_ERRNO | errno.cast_unsigned(),
        Answer::Trap => RET_TRAP,
        Answer::Kill => RET_KILL_PROCESS,
    };
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = match calls {
        Calls::All(number) => {
            vec![step(LOAD, 0, 0, NUMBER), step(JUMP_IF_EQUAL, 0, 1, number as u32)]
        }
        Calls::WithBits(number, argument, bits) => vec![
            step(LOAD, 0, 0, NUMBER),
            step(JUMP_IF_EQUAL, 0, 3, number as u32),
            step(LOAD, 0, 0, ARGUMENTS + 8 * argument),
            step(JUMP_IF_SET, 0, 1, bits),
        ],
    };
    filter.push(step(RETURN, 0, 0, verdict));
    filter.push(step(RETURN, 0, 0, RET_ALLOW));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: both calls change only what this process may do; the program outlives its call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let done = libc::syscall(
            libc::SYS_seccomp,
            SET_MODE_FILTER,
            FILTER_FLAG_TSYNC,
            &raw const program,
        );
        assert_eq!(done, 0, "seccomp: {}", std::io::Error::last_os_error());
    }
}
