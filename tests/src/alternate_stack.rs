//! An alternate signal stack that shows whether a handler has run on it.
//!
//! The trap handler leaves no trace of its own: it shares no memory with anybody. But it runs on
//! the alternate stack of the thread, and a stack that was zeros shows that.

#![allow(unsafe_code)]

use std::ptr;

const SIZE: usize = 64 * 1024;
/// `cs`, `gs`, `fs` and `ss` of a 64-bit program, two bytes each.
const SEGMENTS: u64 = 0x002b_0000_0000_0033;

/// The alternate stack of the thread that made it, from then on.
#[derive(Debug)]
pub struct AlternateStack {
    memory: Box<[u64]>,
    before: libc::stack_t,
}

impl AlternateStack {
    /// Gives this thread a new alternate stack.
    ///
    /// # Panics
    ///
    /// If the kernel refuses.
    #[must_use]
    pub fn install() -> Self {
        let mut memory = vec![0_u64; SIZE / 8].into_boxed_slice();
        // SAFETY: a zeroed description is valid and is overwritten.
        let mut before: libc::stack_t = unsafe { std::mem::zeroed() };
        let fresh = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: SIZE };
        // SAFETY: the memory lives until `drop` has put back the old stack.
        let done = unsafe { libc::sigaltstack(&raw const fresh, &raw mut before) };
        assert_eq!(done, 0, "sigaltstack: {}", std::io::Error::last_os_error());
        AlternateStack { memory, before }
    }

    /// Its addresses.
    #[must_use]
    pub fn range(&self) -> std::ops::Range<usize> {
        let start = self.memory.as_ptr().addr();
        start..start + SIZE
    }

    /// Whether a handler has run on it since it was made, or since [`wipe`](AlternateStack::wipe).
    #[must_use]
    pub fn was_used(&self) -> bool {
        // SAFETY: the memory is ours. Volatile: the kernel writes it behind the compiler's back.
        (0..SIZE / 8).any(|at| unsafe { self.memory.as_ptr().add(at).read_volatile() } != 0)
    }

    /// Where a handler that has run on it left a word that every handler leaves: the segment
    /// registers of user code, as `ucontext_t` holds them on x86-64 Linux.
    #[must_use]
    pub fn mark(&self) -> Option<usize> {
        // SAFETY: as in `was_used`.
        (0..SIZE / 8)
            .find(|at| unsafe { self.memory.as_ptr().add(*at).read_volatile() } == SEGMENTS)
    }

    /// Whether a handler has run since the mark was found or last taken; forgets it. One at most is
    /// seen, however many have run.
    pub fn take(&mut self, mark: usize) -> bool {
        let place = &raw mut self.memory[mark];
        // SAFETY: the memory is ours, and this thread, here, is in no handler.
        unsafe {
            let was_used = place.read_volatile() == SEGMENTS;
            place.write_volatile(0);
            was_used
        }
    }

    /// Forgets.
    pub fn wipe(&mut self) {
        for at in 0..SIZE / 8 {
            // SAFETY: the memory is ours, and this thread, here, is in no handler.
            unsafe { self.memory.as_mut_ptr().add(at).write_volatile(0) };
        }
    }
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        // SAFETY: the stack that the thread had before.
        unsafe { libc::sigaltstack(&raw const self.before, ptr::null_mut()) };
    }
}
