//! x86-64: `mov r32, imm32` / `movabs r64, imm64` for values, a five-byte `nop` / `jmp rel32` for
//! branches.
//!
//! Sources: Intel SDM volume 2 (MOV, NOP, JMP, INT3) and volume 3A section 10.1.3 (self- and
//! cross-modifying code); AMD APM volume 2 section 7.6.1 (cross-modifying code).
//!
//! # The sites
//!
//! | site | bytes | field that changes |
//! | --- | --- | --- |
//! | value, up to 4 bytes | `[41] b8+r imm32` | the immediate, zero-extended to 32 bits |
//! | value, 8 bytes | `48\|49 b8+r imm64` | the immediate, 8-byte aligned |
//! | branch | `0f 1f 44 00 00` or `e9 rel32` | all five bytes |
//!
//! A value narrower than 32 bits is still a 32-bit move: a 16-bit move with an immediate carries a
//! length-changing prefix, which stalls the decoders. The branch is one instruction, never two
//! short ones: a thread can stand between two.
//!
//! Alignment: `.p2align 3,,4` before a five-byte site and `.p2align 3,,5` before a six-byte one
//! keep all bytes of the site inside one aligned eight-byte word, so that one store can change
//! the site and no site straddles a cache line. The eight-byte immediate is an aligned word
//! itself: the `movabs` begins at an address that is 6 modulo 8.

use super::x86;
pub use super::x86::{
    BRANCH_LENGTH, Instruction, JMP, NOP, TRAP, TRAP_ADVANCE, branch_poke, effect, encode_branch,
};
use crate::poke::{Mismatch, Poke};

#[cfg(target_arch = "x86_64")]
pub use super::x86::probe;

/// Name of the target.
pub const NAME: &str = "x86_64";
/// `movabs` holds eight bytes.
pub const MAX_VALUE: usize = 8;
/// `movabs`: REX, opcode, eight bytes.
pub const LONGEST: usize = 10;

/// Bytes of code that must be read to decode a site for a value of `width` bytes.
#[must_use]
#[inline]
pub fn value_length(width: u8) -> usize {
    if width > 4 { LONGEST } else { 6 }
}

/// The instruction at a site, or `None` if what stands there cannot be one of ours.
///
/// ```
/// use immediate_arch::isa::x86_64::{Instruction, decode};
/// let instruction = decode(&[0x41, 0xb9, 7, 0, 0, 0]);
/// assert_eq!(instruction, Some(Instruction::Move { register: 9, bits: 7, field: 2, width: 4 }));
/// assert_eq!(decode(&[0xcc, 0, 0, 0, 0]), None);
/// ```
#[must_use]
#[inline]
pub fn decode(code: &[u8]) -> Option<Instruction> {
    match code {
        [rex @ (0x41 | 0x48 | 0x49), rest @ ..] => x86::decode(Some(*rex), rest),
        _ => x86::decode(None, code),
    }
}

/// The change of a value site of `width` bytes at `address`, whose bytes are `code`, from `old`
/// to `new` (both zero-extended from `width`).
///
/// # Errors
///
/// [`Mismatch`] when the code is not a move of exactly `old`.
#[inline]
pub fn value_poke(
    address: usize,
    code: &[u8],
    width: u8,
    old: u64,
    new: u64,
) -> Result<Poke, Box<Mismatch>> {
    x86::value_poke(address, code, decode(code), width, old, new)
}

/// Emits, once per object file, what makes a module register itself: a constructor and a
/// destructor that hand the module's own header to the runtime, and the header with the bounds of
/// the module's own tables.
///
/// * The parts are one COMDAT group: of all objects of a module one copy stays.
/// * Bounds and header are hidden, so that no module sees another's.
/// * The constructor has the lowest priority number, so it runs before those of the program; the
///   destructor runs after them.
/// * Each table begins with a record of zeros, so that the section exists in every module.
///
/// The names carry the version of the crate: two versions in one program keep apart.
#[doc(hidden)]
#[macro_export]
macro_rules! __x86_64_module {
    () => {
        "
        .ifndef __immediate_enter_0_1_0
        .pushsection .text.__immediate_enter_0_1_0,\"axG\",@progbits,__immediate_enter_0_1_0,comdat
        .weak __immediate_enter_0_1_0
        .hidden __immediate_enter_0_1_0
        .type __immediate_enter_0_1_0,@function
        __immediate_enter_0_1_0:
        endbr64
        lea rdi, [rip + __immediate_header_0_1_0]
        jmp qword ptr [rip + {enter}@GOTPCREL]
        .size __immediate_enter_0_1_0, . - __immediate_enter_0_1_0
        .weak __immediate_leave_0_1_0
        .hidden __immediate_leave_0_1_0
        .type __immediate_leave_0_1_0,@function
        __immediate_leave_0_1_0:
        endbr64
        lea rdi, [rip + __immediate_header_0_1_0]
        jmp qword ptr [rip + {leave}@GOTPCREL]
        .size __immediate_leave_0_1_0, . - __immediate_leave_0_1_0
        .popsection
        .pushsection .rodata.__immediate_header_0_1_0,\"aG\",@progbits,__immediate_enter_0_1_0,comdat
        .balign 8
        .weak __immediate_header_0_1_0
        .hidden __immediate_header_0_1_0
        .type __immediate_header_0_1_0,@object
        __immediate_header_0_1_0:
        .long 1
        .long 36
        .hidden __start_immediate_variables_0_1_0
        .hidden __stop_immediate_variables_0_1_0
        .hidden __start_immediate_sites_0_1_0
        .hidden __stop_immediate_sites_0_1_0
        .hidden __start_immediate_comparisons_0_1_0
        .hidden __stop_immediate_comparisons_0_1_0
        .hidden __start_immediate_tests_0_1_0
        .hidden __stop_immediate_tests_0_1_0
        .long __start_immediate_variables_0_1_0 - .
        .long __stop_immediate_variables_0_1_0 - .
        .long __start_immediate_sites_0_1_0 - .
        .long __stop_immediate_sites_0_1_0 - .
        .long __start_immediate_comparisons_0_1_0 - .
        .long __stop_immediate_comparisons_0_1_0 - .
        .long __start_immediate_tests_0_1_0 - .
        .long __stop_immediate_tests_0_1_0 - .
        .size __immediate_header_0_1_0, . - __immediate_header_0_1_0
        .popsection
        .pushsection .init_array.00001,\"awG\",@init_array,__immediate_enter_0_1_0,comdat
        .balign 8
        .quad __immediate_enter_0_1_0
        .popsection
        .pushsection .fini_array.00001,\"awG\",@fini_array,__immediate_enter_0_1_0,comdat
        .balign 8
        .quad __immediate_leave_0_1_0
        .popsection
        .pushsection immediate_variables_0_1_0,\"aGR\",@progbits,__immediate_enter_0_1_0,comdat
        .balign 4
        .zero 4
        .popsection
        .pushsection immediate_sites_0_1_0,\"aGR\",@progbits,__immediate_enter_0_1_0,comdat
        .balign 4
        .zero 12
        .popsection
        .pushsection immediate_comparisons_0_1_0,\"aGR\",@progbits,__immediate_enter_0_1_0,comdat
        .balign 8
        .zero 24
        .popsection
        .pushsection immediate_tests_0_1_0,\"aGR\",@progbits,__immediate_enter_0_1_0,comdat
        .balign 4
        .zero 16
        .popsection
        .endif
        "
    };
}

// Every site carries one relocation more, of the kind that changes nothing, against its own record
// (`3:`). It keeps the record as long as the code, and it makes the code of two sites differ for a
// linker that folds identical functions (`--icf=all`): two sites may be the same instruction and
// still branch on opposite outcomes. Not against the variable: GNU ld cannot resolve that when the
// variable lies in another shared object.

/// A value site: expands to an expression of type `u64`, the bits of the value zero-extended.
///
/// `size` is the size of the value in bytes (1 to 8), `bits` its built-in bits.
#[doc(hidden)]
#[macro_export]
macro_rules! __x86_64_value {
    ($enter:path, $leave:path, $variable:path, $size:expr, $bits:expr) => {{
        let bits: ::core::primitive::u64;
        // SAFETY: loads an immediate into a register that the compiler chose; touches no flags, no
        // memory and no stack. The other sections hold data and the module's constructor.
        unsafe {
            ::core::arch::asm!(
                ".if {size} > 4",
                ".p2align 3",
                ".byte 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00",
                "2:",
                "movabs {out:r}, {bits}",
                ".else",
                ".p2align 3,,5",
                "2:",
                "mov {out:e}, {bits}",
                ".endif",
                ".reloc 2b, R_X86_64_NONE, 3f",
                ".pushsection immediate_sites_0_1_0,\"aR\",@progbits",
                ".balign 4",
                "3:",
                ".long 2b - .",
                ".long {variable}@GOTPCREL",
                ".long 0",
                ".popsection",
                $crate::__x86_64_module!(),
                out = out(reg) bits,
                size = const $size,
                bits = const $bits,
                variable = sym $variable,
                enter = sym $enter,
                leave = sym $leave,
                options(nomem, nostack, preserves_flags),
            );
        }
        bits
    }};
}

/// A branch site without a test of its own: the variable is a `bool`.
///
/// `jump` says whether the built file holds the `jmp` (1) or the `nop` (0); `kind` is 1 where the
/// branch is taken when the variable is true, 2 where it is taken when it is false. `arm` is the
/// block to which the branch goes.
#[doc(hidden)]
#[macro_export]
macro_rules! __x86_64_branch {
    ($enter:path, $leave:path, $variable:path, $kind:expr, $jump:expr, $arm:block) => {
        // SAFETY: a nop, or a jump to a block that the compiler knows as a successor; touches no
        // register, no flags, no memory and no stack.
        unsafe {
            ::core::arch::asm!(
                ".p2align 3,,4",
                "2:",
                ".if {jump}",
                ".byte 0xe9",
                ".long {target} - . - 4",
                ".else",
                ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00",
                ".endif",
                ".reloc 2b, R_X86_64_NONE, 3f",
                ".pushsection immediate_sites_0_1_0,\"aR\",@progbits",
                ".balign 4",
                "3:",
                ".long 2b - .",
                ".long {variable}@GOTPCREL + {kind}",
                ".long {target} - .",
                ".popsection",
                $crate::__x86_64_module!(),
                jump = const $jump,
                kind = const $kind,
                target = label $arm,
                variable = sym $variable,
                enter = sym $enter,
                leave = sym $leave,
                options(nomem, nostack, preserves_flags),
            )
        }
    };
}

/// A branch site that is taken by the outcome of a comparison with a constant.
///
/// `operator` is the comparison's number and `constant` the other side's bits.
#[doc(hidden)]
#[macro_export]
macro_rules! __x86_64_comparison {
    ($enter:path, $leave:path, $variable:path, $kind:expr, $jump:expr, $operator:expr, $constant:expr, $arm:block) => {
        // SAFETY: as for a branch site.
        unsafe {
            ::core::arch::asm!(
                ".p2align 3,,4",
                "2:",
                ".if {jump}",
                ".byte 0xe9",
                ".long {target} - . - 4",
                ".else",
                ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00",
                ".endif",
                ".reloc 2b, R_X86_64_NONE, 3f",
                ".pushsection immediate_comparisons_0_1_0,\"aR\",@progbits",
                ".balign 8",
                "3:",
                ".long 2b - .",
                ".long {variable}@GOTPCREL + {kind}",
                ".long {target} - .",
                ".long {operator}",
                ".quad {constant}",
                ".popsection",
                $crate::__x86_64_module!(),
                jump = const $jump,
                kind = const $kind,
                operator = const $operator,
                constant = const $constant,
                target = label $arm,
                variable = sym $variable,
                enter = sym $enter,
                leave = sym $leave,
                options(nomem, nostack, preserves_flags),
            )
        }
    };
}

/// A branch site that is taken by the outcome of a test of its own, an
/// `extern "C" fn(u64) -> bool` over the bits of the value. The built file holds the `nop`.
#[doc(hidden)]
#[macro_export]
macro_rules! __x86_64_test {
    ($enter:path, $leave:path, $variable:path, $kind:expr, $test:path, $arm:block) => {
        // SAFETY: as for a branch site.
        unsafe {
            ::core::arch::asm!(
                ".p2align 3,,4",
                "2:",
                ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00",
                ".reloc 2b, R_X86_64_NONE, 3f",
                ".pushsection immediate_tests_0_1_0,\"aR\",@progbits",
                ".balign 4",
                "3:",
                ".long 2b - .",
                ".long {variable}@GOTPCREL + {kind}",
                ".long {target} - .",
                ".long {test} - .",
                ".popsection",
                $crate::__x86_64_module!(),
                kind = const $kind,
                target = label $arm,
                test = sym $test,
                variable = sym $variable,
                enter = sym $enter,
                leave = sym $leave,
                options(nomem, nostack, preserves_flags),
            )
        }
    };
}

/// The record of a variable, in whose module it can then be listed and set without any site.
#[doc(hidden)]
#[macro_export]
macro_rules! __x86_64_variable {
    ($enter:path, $leave:path, $variable:path) => {
        // SAFETY: emits data and the module's constructor; no instruction stands here.
        unsafe {
            ::core::arch::asm!(
                ".pushsection immediate_variables_0_1_0,\"aR\",@progbits",
                ".balign 4",
                ".long {variable}@GOTPCREL",
                ".popsection",
                $crate::__x86_64_module!(),
                variable = sym $variable,
                enter = sym $enter,
                leave = sym $leave,
                options(nomem, nostack, preserves_flags),
            )
        }
    };
}

/// Of two pieces of code, the one for a target with templates.
#[doc(hidden)]
#[macro_export]
macro_rules! __x86_64_select {
    ({ $($with:tt)* } { $($without:tt)* }) => { $($with)* };
}

pub use crate::{
    __x86_64_branch as branch_site, __x86_64_comparison as comparison_site,
    __x86_64_select as select, __x86_64_test as test_site, __x86_64_value as value_site,
    __x86_64_variable as variable_record,
};
