//! The threads of an emulator that runs this program (qemu-user), which are no threads of the program.
//!
//! qemu-user has one thread of its own, which blocks every signal and never runs code of the program;
//! the system calls of the program see it in `/proc/self/task` all the same. It would stand in the way of
//! every protocol, and of knowing that the program has one thread.
//!
//! The emulator never blocks SIGBUS in a thread of the program, but for moments, because it needs it; so
//! a thread that blocks it, and goes on blocking it, is the emulator's own.

use std::io::Read;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use super::task::Directory;

/// Between two looks at a thread.
const PAUSE: Duration = Duration::from_micros(100);
const LOOKS: usize = 50;
/// The thread that was last found to be the emulator's; a child of `fork` has another.
static OWNED: AtomicI32 = AtomicI32::new(0);

/// Whether the thread is one that an emulator has for itself. Allocates nothing once [`is_there`] has
/// been asked.
pub(super) fn owns(directory: &Directory, thread: i32) -> bool {
    if !is_there() || OWNED.load(Ordering::Relaxed) == thread {
        return is_there();
    }
    let blocks = || {
        let status = directory.status(thread).ok().flatten();
        status.is_some_and(|status| status.blocked & 1 << (libc::SIGBUS - 1) != 0)
    };
    let owns = blocks() && {
        (0..LOOKS).all(|_| {
            std::thread::sleep(PAUSE);
            blocks()
        })
    };
    if owns {
        OWNED.store(thread, Ordering::Relaxed);
    }
    owns
}

/// Whether the kernel runs an executable of another machine than ours.
pub(super) fn is_there() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // The emulator answers for `/proc/self/exe`; the kernel for the thread's own.
        let machine = |path: &str| {
            let mut header = [0; 20];
            std::fs::File::open(path).ok()?.read_exact(&mut header).ok()?;
            // Byte order, then `e_machine`.
            Some((header[5], [header[18], header[19]]))
        };
        let own = machine("/proc/self/exe");
        let kernels = machine(&format!("/proc/self/task/{}/exe", super::own_id()));
        own.is_some() && kernels.is_some() && own != kernels
    })
}
