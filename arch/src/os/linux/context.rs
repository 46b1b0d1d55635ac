//! The registers of a thread that is in a signal handler.
//!
//! A target is one arm below: where its program counter and its general registers lie in the
//! `ucontext_t` of the C library or, where the crate `libc` does not have that everywhere, of the
//! kernel.

use crate::isa::Effect;

#[cfg(not(any(target_arch = "powerpc", target_arch = "powerpc64")))]
pub use libc::ucontext_t as Context;

cfg_select! {
    any(target_arch = "powerpc", target_arch = "powerpc64") => {
        /// The general registers 0 to 31, the program counter, and others.
        type Registers = [usize; 48];
        const PROGRAM_COUNTER: usize = 32;

        /// The kernel's `struct ucontext` (asm/ucontext.h), as far as it is used here.
        #[repr(C)]
        #[derive(Debug)]
        #[cfg(target_arch = "powerpc64")]
        pub struct Context {
            flags: usize,
            link: usize,
            stack: [usize; 3],
            /// The signals that the interrupted code blocked.
            pub uc_sigmask: libc::sigset_t,
            signal: [usize; 8],
            registers: Registers,
        }

        /// The kernel's `struct ucontext` (asm/ucontext.h), as far as it is used here.
        #[repr(C)]
        #[derive(Debug)]
        #[cfg(target_arch = "powerpc")]
        pub struct Context {
            flags: usize,
            link: usize,
            stack: [usize; 3],
            padding: [usize; 7],
            registers: *mut Registers,
            /// The signals that the interrupted code blocked.
            pub uc_sigmask: libc::sigset_t,
        }

        #[cfg(target_arch = "powerpc64")]
        fn registers(context: &mut Context) -> &mut Registers {
            &mut context.registers
        }

        #[cfg(target_arch = "powerpc")]
        #[allow(unsafe_code)]
        fn registers(context: &mut Context) -> &mut Registers {
            // SAFETY: the kernel points to where it has put the registers, beside the context.
            unsafe { &mut *context.registers }
        }

        /// The program counter.
        #[must_use]
        pub fn pc(context: &mut Context) -> usize {
            registers(context)[PROGRAM_COUNTER]
        }

        /// Moves the thread to `pc`.
        pub fn set_pc(context: &mut Context, pc: usize) {
            registers(context)[PROGRAM_COUNTER] = pc;
        }

        fn set_register(context: &mut Context, number: u8, bits: u64) {
            registers(context)[usize::from(number & 31)] = bits as usize;
        }
    }
    any(target_arch = "x86", target_arch = "x86_64") => {
        /// Where each general register lies, by its number in the instruction set
        /// (Intel SDM volume 2, table 3-1).
        #[cfg(target_arch = "x86_64")]
        const REGISTERS: [libc::c_int; 16] = [
            libc::REG_RAX, libc::REG_RCX, libc::REG_RDX, libc::REG_RBX,
            libc::REG_RSP, libc::REG_RBP, libc::REG_RSI, libc::REG_RDI,
            libc::REG_R8, libc::REG_R9, libc::REG_R10, libc::REG_R11,
            libc::REG_R12, libc::REG_R13, libc::REG_R14, libc::REG_R15,
        ];
        #[cfg(target_arch = "x86_64")]
        const PROGRAM_COUNTER: libc::c_int = libc::REG_RIP;

        /// Where each general register lies, by its number in the instruction set.
        #[cfg(target_arch = "x86")]
        const REGISTERS: [libc::c_int; 8] = [
            libc::REG_EAX, libc::REG_ECX, libc::REG_EDX, libc::REG_EBX,
            libc::REG_ESP, libc::REG_EBP, libc::REG_ESI, libc::REG_EDI,
        ];
        #[cfg(target_arch = "x86")]
        const PROGRAM_COUNTER: libc::c_int = libc::REG_EIP;

        /// The program counter.
        #[must_use]
        pub fn pc(context: &mut Context) -> usize {
            context.uc_mcontext.gregs[PROGRAM_COUNTER as usize] as usize
        }

        /// Moves the thread to `pc`.
        pub fn set_pc(context: &mut Context, pc: usize) {
            context.uc_mcontext.gregs[PROGRAM_COUNTER as usize] = pc as libc::greg_t;
        }

        fn set_register(context: &mut Context, number: u8, bits: u64) {
            let place = REGISTERS[usize::from(number) % REGISTERS.len()];
            context.uc_mcontext.gregs[place as usize] = bits as libc::greg_t;
        }
    }
    _ => {
        /// The program counter; this target has no traps to look at.
        #[must_use]
        pub fn pc(_: &mut Context) -> usize {
            0
        }

        /// Does nothing; this target has no traps to look at.
        pub fn set_pc(_: &mut Context, _: usize) {}

        fn set_register(_: &mut Context, _: u8, _: u64) {}
    }
}

/// Lets the thread go on as if it had executed the instruction.
pub fn apply(context: &mut Context, effect: Effect) {
    if let Some((register, bits)) = effect.register {
        set_register(context, register, bits);
    }
    set_pc(context, effect.next);
}
