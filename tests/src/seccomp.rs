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
const RET_USER_NOTIF: u32 = 0x7fc0_0000;
const RET_KILL_PROCESS: u32 = 0x8000_0000;
const SET_MODE_FILTER: libc::c_long = 1;
const FILTER_FLAG_TSYNC: libc::c_long = 1;
const FILTER_FLAG_NEW_LISTENER: libc::c_long = 8;
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
    install(calls, verdict, FILTER_FLAG_TSYNC);
}

/// Hands these calls, of this thread and of those that it makes from now on, to a thread that
/// `decide`s: `None` lets a call happen, else it fails with that `errno`. It is told how many calls
/// there were before.
///
/// # Panics
///
/// If the kernel takes no filter.
pub fn supervise(calls: Calls, mut decide: impl FnMut(u64) -> Option<i32> + Send + 'static) {
    let (give, take) = std::sync::mpsc::channel();
    // Made before there is a filter, so that its own calls are not handed to itself.
    std::thread::spawn(move || answer_calls(take.recv().expect("a listener"), &mut decide));
    give.send(install(calls, RET_USER_NOTIF, FILTER_FLAG_NEW_LISTENER)).expect("it waits");
}

/// `struct seccomp_notif` and `struct seccomp_notif_resp` of linux/seccomp.h.
#[repr(C)]
struct Asked {
    id: u64,
    thread: u32,
    flags: u32,
    call: [u64; 8],
}

#[repr(C)]
struct Answered {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

// _IOWR('!', 0, struct seccomp_notif) and _IOWR('!', 1, struct seccomp_notif_resp).
const RECEIVE: libc::c_ulong = 0xc050_2100;
const SEND: libc::c_ulong = 0xc018_2101;
const CONTINUE: u32 = 1;

fn answer_calls(listener: libc::c_int, decide: &mut impl FnMut(u64) -> Option<i32>) {
    let mut count = 0;
    loop {
        let mut asked = Asked { id: 0, thread: 0, flags: 0, call: [0; 8] };
        // SAFETY: the kernel fills a structure of the size that the number of the call says.
        if unsafe { libc::ioctl(listener, RECEIVE, &raw mut asked) } != 0 {
            // A signal came, or who asked has gone.
            continue;
        }
        let error = decide(count);
        count += 1;
        let answered = Answered {
            id: asked.id,
            value: 0,
            error: error.map_or(0, |errno| -errno),
            flags: if error.is_none() { CONTINUE } else { 0 },
        };
        // SAFETY: the kernel reads a structure of the size that the number of the call says. It fails
        // when who asked has gone.
        unsafe { libc::ioctl(listener, SEND, &raw const answered) };
    }
}

/// Installs a filter that answers the calls by `verdict`; gives what the call gave.
fn install(calls: Calls, verdict: u32, flags: libc::c_long) -> libc::c_int {
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
        let done = libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, &raw const program);
        assert!(done >= 0, "seccomp: {}", std::io::Error::last_os_error());
        done as libc::c_int
    }
}
