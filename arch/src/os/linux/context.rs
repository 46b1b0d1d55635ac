//! The registers of a thread that is in a signal handler.
//!
//! A target is one arm below: where its program counter and its general registers lie in the
//! `ucontext_t` of the C library.

use crate::isa::Effect;

cfg_select! {
    target_arch = "x86_64" => {
        /// Where each general register lies, by its number in the instruction set
        /// (Intel SDM volume 2, table 3-1).
        const REGISTERS: [libc::c_int; 16] = [
            libc::REG_RAX, libc::REG_RCX, libc::REG_RDX, libc::REG_RBX,
            libc::REG_RSP, libc::REG_RBP, libc::REG_RSI, libc::REG_RDI,
            libc::REG_R8, libc::REG_R9, libc::REG_R10, libc::REG_R11,
            libc::REG_R12, libc::REG_R13, libc::REG_R14, libc::REG_R15,
        ];

        /// The program counter.
        #[must_use]
        pub fn pc(context: &libc::ucontext_t) -> usize {
            context.uc_mcontext.gregs[libc::REG_RIP as usize] as usize
        }

        /// Moves the thread to `pc`.
        pub fn set_pc(context: &mut libc::ucontext_t, pc: usize) {
            context.uc_mcontext.gregs[libc::REG_RIP as usize] = pc as libc::greg_t;
        }

        fn set_register(context: &mut libc::ucontext_t, number: u8, bits: u64) {
            let place = REGISTERS[usize::from(number & 15)];
            context.uc_mcontext.gregs[place as usize] = bits.cast_signed();
        }
    }
    target_arch = "x86" => {
        /// As for x86-64.
        const REGISTERS: [libc::c_int; 8] = [
            libc::REG_EAX, libc::REG_ECX, libc::REG_EDX, libc::REG_EBX,
            libc::REG_ESP, libc::REG_EBP, libc::REG_ESI, libc::REG_EDI,
        ];

        /// The program counter.
        #[must_use]
        pub fn pc(context: &libc::ucontext_t) -> usize {
            context.uc_mcontext.gregs[libc::REG_EIP as usize] as usize
        }

        /// Moves the thread to `pc`.
        pub fn set_pc(context: &mut libc::ucontext_t, pc: usize) {
            context.uc_mcontext.gregs[libc::REG_EIP as usize] = pc as libc::greg_t;
        }

        fn set_register(context: &mut libc::ucontext_t, number: u8, bits: u64) {
            let place = REGISTERS[usize::from(number & 7)];
            context.uc_mcontext.gregs[place as usize] = bits as libc::greg_t;
        }
    }
    _ => {
        /// The program counter; this target has no traps to look at.
        #[must_use]
        pub fn pc(_: &libc::ucontext_t) -> usize {
            0
        }

        /// Does nothing; this target has no traps to look at.
        pub fn set_pc(_: &mut libc::ucontext_t, _: usize) {}

        fn set_register(_: &mut libc::ucontext_t, _: u8, _: u64) {}
    }
}

/// Lets the thread go on as if it had executed the instruction.
pub fn apply(context: &mut libc::ucontext_t, effect: Effect) {
    if let Some((register, bits)) = effect.register {
        set_register(context, register, bits);
    }
    set_pc(context, effect.next);
}
