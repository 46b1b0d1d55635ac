//! Bringing stored code to the instruction caches.
//!
//! On x86 the caches are coherent, and nothing is done. On PowerPC they need not be: the vDSO's
//! `__kernel_sync_dicache(start, end)` does it, which knows the machine, or, where there is none (static
//! programs, emulators), the instructions themselves do. The end is an address, and exclusive.

cfg_select! {
    any(target_arch = "powerpc", target_arch = "powerpc64") => { pub use powerpc::flush; }
    _ => {
        /// Nothing: the caches are coherent.
        #[inline(always)]
        pub fn flush(_: &[crate::poke::Poke]) {}
    }
}

#[cfg(any(target_arch = "powerpc", target_arch = "powerpc64"))]
#[allow(unsafe_code)]
mod powerpc {
    use std::arch::asm;
    use std::ops::Range;
    use std::sync::OnceLock;

    use super::super::vdso;
    use crate::isa::powerpc::{Lines, Step, coherence};
    use crate::poke::Poke;

    // From linux/auxvec.h of powerpc.
    const AT_DCACHEBSIZE: libc::c_ulong = 19;
    const AT_ICACHEBSIZE: libc::c_ulong = 20;
    /// The smallest lines that a PowerPC has (8xx): right for larger ones too, only slower.
    const SMALLEST_LINE: usize = 16;

    /// Code that was stored at `pokes`, sorted by address, is what processors fetch once they have
    /// synchronised.
    pub fn flush(pokes: &[Poke]) {
        let lines = lines();
        match kernel() {
            Some(function) => ranges(pokes, lines).for_each(|range| sync_dicache(function, range)),
            None => coherence(ranges(pokes, lines), lines, carry_out),
        }
    }

    /// The ranges that were stored; sites that share a line are one.
    fn ranges(pokes: &[Poke], lines: Lines) -> impl Iterator<Item = Range<usize>> + Clone {
        let line = lines.data.min(lines.instruction);
        let mut rest = pokes;
        std::iter::from_fn(move || {
            let (first, mut others) = rest.split_first()?;
            let mut range = first.field_address()..first.end();
            while let [next, more @ ..] = others
                && next.field_address() / line == (range.end - 1) / line
            {
                range.end = next.end();
                others = more;
            }
            rest = others;
            Some(range)
        })
    }

    fn lines() -> Lines {
        let size = |kind| {
            // SAFETY: reads a number that the kernel gave the process.
            let size = unsafe { libc::getauxval(kind) } as usize;
            if size.is_power_of_two() { size } else { SMALLEST_LINE }
        };
        Lines { data: size(AT_DCACHEBSIZE), instruction: size(AT_ICACHEBSIZE) }
    }

    /// Address of the code of the kernel's function.
    fn kernel() -> Option<usize> {
        static FOUND: OnceLock<Option<usize>> = OnceLock::new();
        *FOUND.get_or_init(|| vdso::find(b"__kernel_sync_dicache"))
    }

    /// Calls the kernel's function: in the vDSO a symbol is the address of code in all three ABIs.
    fn sync_dicache(function: usize, range: Range<usize>) {
        // SAFETY: a function of two addresses, by the C convention, which touches no stack but its own
        // frame; it reads no memory of ours.
        unsafe {
            asm!(
                "mtctr {function}",
                "bctrl",
                function = in(reg) function,
                inout("3") range.start => _,
                inout("4") range.end => _,
                clobber_abi("C"),
            );
        }
    }

    fn carry_out(step: Step) {
        // SAFETY: change no memory; the lines hold text that is loaded.
        unsafe {
            match step {
                Step::StoreLine(line) => asm!("dcbst 0, {line}", line = in(reg) line),
                Step::Sync => asm!("sync"),
                Step::InvalidateLine(line) => asm!("icbi 0, {line}", line = in(reg) line),
                Step::Forget => asm!("isync"),
            }
        }
    }
}
