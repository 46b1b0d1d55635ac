//! i386: `mov r32, imm32` for values, a five-byte `nop` / `jmp rel32` for branches.
//!
//! Sources: Intel SDM volume 2 (MOV, NOP, JMP, INT3); System V ABI, Intel386 supplement, chapter 4
//! (relocations) and section 2.2 (calls: arguments on the stack, which is aligned to 16 bytes).
//!
//! # The sites
//!
//! | site | bytes | field that changes |
//! | --- | --- | --- |
//! | value, up to 4 bytes | `b8+r imm32` | the immediate, zero-extended to 32 bits |
//! | branch | `0f 1f 44 00 00` or `e9 rel32` | all five bytes |
//!
//! Both are as on x86-64, and so is their alignment: all bytes lie inside one aligned eight-byte word.
//! A value of 8 bytes would take two instructions, and a thread can stand between two; it is read from
//! memory.

use super::x86;
pub use super::x86::{
    BRANCH_LENGTH, Instruction, JMP, NOP, TRAP, TRAP_ADVANCE, branch_poke, effect, encode_branch,
};
use crate::poke::{Mismatch, Poke};

#[cfg(target_arch = "x86")]
pub use super::x86::probe;

/// Name of the target.
pub const NAME: &str = "i386";
/// `mov` holds four bytes.
pub const MAX_VALUE: usize = 4;
/// Both instructions have five bytes.
pub const LONGEST: usize = 5;

/// Bytes of code that must be read to decode a site for a value of `width` bytes.
#[must_use]
#[inline]
pub fn value_length(_width: u8) -> usize {
    LONGEST
}

/// The instruction at a site, or `None` if what stands there cannot be one of ours.
///
/// ```
/// use immediate_arch::isa::i386::{Instruction, decode};
/// let instruction = decode(&[0xbf, 7, 0, 0, 0]);
/// assert_eq!(instruction, Some(Instruction::Move { register: 7, bits: 7, field: 1, width: 4 }));
/// assert_eq!(decode(&[0x48, 0xbf, 7, 0, 0, 0, 0, 0, 0, 0]), None); // `dec eax` here, no prefix
/// ```
#[must_use]
#[inline]
pub fn decode(code: &[u8]) -> Option<Instruction> {
    x86::decode(None, code)
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
macro_rules! __i386_module {
    () => {
        "
        .ifndef __immediate_enter_0_1_0
        .pushsection .text.__immediate_enter_0_1_0,\"axG\",@progbits,__immediate_enter_0_1_0,comdat
        .weak __immediate_enter_0_1_0
        .hidden __immediate_enter_0_1_0
        .type __immediate_enter_0_1_0,@function
        __immediate_enter_0_1_0:
        .att_syntax
        endbr32
        leal -8(%esp), %esp
        calll 4f
        4:
        popl %eax
        leal __immediate_header_0_1_0 - 4b(%eax), %ecx
        pushl %ecx
        calll *__immediate_doors_0_1_0 - 4b(%eax)
        leal 12(%esp), %esp
        retl
        .intel_syntax noprefix
        .size __immediate_enter_0_1_0, . - __immediate_enter_0_1_0
        .weak __immediate_leave_0_1_0
        .hidden __immediate_leave_0_1_0
        .type __immediate_leave_0_1_0,@function
        __immediate_leave_0_1_0:
        .att_syntax
        endbr32
        leal -8(%esp), %esp
        calll 4f
        4:
        popl %eax
        leal __immediate_header_0_1_0 - 4b(%eax), %ecx
        pushl %ecx
        calll *__immediate_doors_0_1_0 - 4b + 4(%eax)
        leal 12(%esp), %esp
        retl
        .intel_syntax noprefix
        .size __immediate_leave_0_1_0, . - __immediate_leave_0_1_0
        .popsection
        .pushsection .data.rel.ro.__immediate_doors_0_1_0,\"awG\",@progbits,__immediate_enter_0_1_0,comdat
        .balign 4
        .weak __immediate_doors_0_1_0
        .hidden __immediate_doors_0_1_0
        .type __immediate_doors_0_1_0,@object
        __immediate_doors_0_1_0:
        .long {enter}
        .long {leave}
        .size __immediate_doors_0_1_0, . - __immediate_doors_0_1_0
        .popsection
        .pushsection .rodata.__immediate_header_0_1_0,\"aG\",@progbits,__immediate_enter_0_1_0,comdat
        .balign 4
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
        .balign 4
        .long __immediate_enter_0_1_0
        .popsection
        .pushsection .fini_array.00001,\"awG\",@fini_array,__immediate_enter_0_1_0,comdat
        .balign 4
        .long __immediate_leave_0_1_0
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

/// Emits, once per object file and variable, a pointer to the variable: what a record refers to.
///
/// A distance to the variable itself would be wrong where the variable lies in another shared object,
/// and i386 has no relocation for the distance to a slot of the global offset table. So every
/// variable has a slot of ours: one dynamic relocation a variable, in memory that is read-only after
/// relocation, and none a site.
#[doc(hidden)]
#[macro_export]
macro_rules! __i386_slot {
    () => {
        "
        .ifndef __immediate_slot_0_1_0_{variable}
        .pushsection .data.rel.ro.__immediate_slot_0_1_0_{variable},\"awG\",@progbits,__immediate_slot_0_1_0_{variable},comdat
        .balign 4
        .weak __immediate_slot_0_1_0_{variable}
        .hidden __immediate_slot_0_1_0_{variable}
        .type __immediate_slot_0_1_0_{variable},@object
        __immediate_slot_0_1_0_{variable}:
        .long {variable}
        .size __immediate_slot_0_1_0_{variable}, . - __immediate_slot_0_1_0_{variable}
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
/// `size` is the size of the value in bytes (1 to 4), which the instruction does not depend on, `bits`
/// its built-in bits.
#[doc(hidden)]
#[macro_export]
macro_rules! __i386_value {
    ($enter:path, $leave:path, $variable:path, $size:expr, $bits:expr) => {{
        let bits: u32;
        // SAFETY: loads an immediate into a register that the compiler chose; touches no flags, no
        // memory and no stack. The other sections hold data and the module's constructor.
        unsafe {
            ::core::arch::asm!(
                ".p2align 3,,4",
                "2:",
                "mov {out:e}, {bits}",
                ".reloc 2b, R_386_NONE, 3f",
                ".pushsection immediate_sites_0_1_0,\"aR\",@progbits",
                ".balign 4",
                "3:",
                ".long 2b - .",
                ".long __immediate_slot_0_1_0_{variable} - .",
                ".long 0",
                ".popsection",
                $crate::__i386_slot!(),
                $crate::__i386_module!(),
                out = out(reg) bits,
                bits = const $bits,
                variable = sym $variable,
                enter = sym $enter,
                leave = sym $leave,
                options(nomem, nostack, preserves_flags),
            );
        }
        ::core::primitive::u64::from(bits)
    }};
}

/// A branch site without a test of its own: the variable is a `bool`.
///
/// `jump` says whether the built file holds the `jmp` (1) or the `nop` (0); `kind` is 1 where the
/// branch is taken when the variable is true, 2 where it is taken when it is false. `arm` is the
/// block to which the branch goes.
#[doc(hidden)]
#[macro_export]
macro_rules! __i386_branch {
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
                ".reloc 2b, R_386_NONE, 3f",
                ".pushsection immediate_sites_0_1_0,\"aR\",@progbits",
                ".balign 4",
                "3:",
                ".long 2b - .",
                ".long __immediate_slot_0_1_0_{variable} - . + {kind}",
                ".long {target} - .",
                ".popsection",
                $crate::__i386_slot!(),
                $crate::__i386_module!(),
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
macro_rules! __i386_comparison {
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
                ".reloc 2b, R_386_NONE, 3f",
                ".pushsection immediate_comparisons_0_1_0,\"aR\",@progbits",
                ".balign 8",
                "3:",
                ".long 2b - .",
                ".long __immediate_slot_0_1_0_{variable} - . + {kind}",
                ".long {target} - .",
                ".long {operator}",
                ".quad {constant}",
                ".popsection",
                $crate::__i386_slot!(),
                $crate::__i386_module!(),
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
macro_rules! __i386_test {
    ($enter:path, $leave:path, $variable:path, $kind:expr, $test:path, $arm:block) => {
        // SAFETY: as for a branch site.
        unsafe {
            ::core::arch::asm!(
                ".p2align 3,,4",
                "2:",
                ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00",
                ".reloc 2b, R_386_NONE, 3f",
                ".pushsection immediate_tests_0_1_0,\"aR\",@progbits",
                ".balign 4",
                "3:",
                ".long 2b - .",
                ".long __immediate_slot_0_1_0_{variable} - . + {kind}",
                ".long {target} - .",
                ".long {test} - .",
                ".popsection",
                $crate::__i386_slot!(),
                $crate::__i386_module!(),
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
macro_rules! __i386_variable {
    ($enter:path, $leave:path, $variable:path) => {
        // SAFETY: emits data and the module's constructor; no instruction stands here.
        unsafe {
            ::core::arch::asm!(
                ".pushsection immediate_variables_0_1_0,\"aR\",@progbits",
                ".balign 4",
                ".long __immediate_slot_0_1_0_{variable} - .",
                ".popsection",
                $crate::__i386_slot!(),
                $crate::__i386_module!(),
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
macro_rules! __i386_select {
    ({ $($with:tt)* } { $($without:tt)* }) => { $($with)* };
}

pub use crate::{
    __i386_branch as branch_site, __i386_comparison as comparison_site, __i386_select as select,
    __i386_test as test_site, __i386_value as value_site, __i386_variable as variable_record,
};
