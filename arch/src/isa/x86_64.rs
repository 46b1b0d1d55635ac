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

use super::Effect;
#[cfg(target_arch = "x86_64")]
use crate::os::Failure;
use crate::poke::{Mismatch, Poke};
#[cfg(target_arch = "x86_64")]
use crate::status::Reason;

/// Name of the target.
pub const NAME: &str = "x86_64";
/// `movabs` holds eight bytes.
pub const MAX_VALUE: usize = 8;
/// `movabs`: REX, opcode, eight bytes.
pub const LONGEST: usize = 10;
/// `int3`.
pub const TRAP: &[u8] = &[0xcc];
/// `int3` is a trap, not a fault: the program counter stands behind its one byte.
pub const TRAP_ADVANCE: usize = 1;

/// Length of a branch site, in both of its states. [`__x86_64_branch`](crate::__x86_64_branch)
/// emits so many bytes.
pub const BRANCH_LENGTH: usize = 5;
/// The branch that is not taken: `nop dword ptr [rax + rax]`.
pub const NOP: [u8; BRANCH_LENGTH] = [0x0f, 0x1f, 0x44, 0x00, 0x00];
/// Opcode of `jmp rel32`.
pub const JMP: u8 = 0xe9;
/// Opcode of `mov r, imm` for register 0.
const MOV: u8 = 0xb8;

/// An instruction that can stand at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// `mov register, bits`.
    Move {
        /// Number of the general register, 0 to 15.
        register: u8,
        /// The immediate, zero-extended.
        bits: u64,
        /// Offset of the immediate in bytes.
        field: u8,
        /// Width of the immediate in bytes, 4 or 8.
        width: u8,
    },
    /// The five-byte `nop`.
    Nop,
    /// `jmp`, relative to the end of the instruction.
    Jump {
        /// Signed distance in bytes from the end of the instruction.
        displacement: i32,
    },
}

impl Instruction {
    /// Length in bytes.
    #[must_use]
    #[inline]
    pub fn length(&self) -> usize {
        match *self {
            Instruction::Move { field, width, .. } => usize::from(field) + usize::from(width),
            Instruction::Nop | Instruction::Jump { .. } => BRANCH_LENGTH,
        }
    }
}

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
    if code.get(..BRANCH_LENGTH) == Some(&NOP) {
        return Some(Instruction::Nop);
    }
    let (prefix, rest) = match *code.first()? {
        rex @ (0x41 | 0x48 | 0x49) => (Some(rex), &code[1..]),
        _ => (None, code),
    };
    match *rest.first()? {
        JMP if prefix.is_none() => {
            let field = rest.get(1..5)?.try_into().ok()?;
            Some(Instruction::Jump { displacement: i32::from_le_bytes(field) })
        }
        opcode @ MOV..=0xbf => {
            let rex = prefix.unwrap_or(0);
            let register = (opcode - MOV) | ((rex & 1) << 3);
            let field = 1 + u8::from(prefix.is_some());
            let (width, bits) = if rex & 8 != 0 {
                (8, u64::from_le_bytes(rest.get(1..9)?.try_into().ok()?))
            } else {
                (4, u64::from(u32::from_le_bytes(rest.get(1..5)?.try_into().ok()?)))
            };
            Some(Instruction::Move { register, bits, field, width })
        }
        _ => None,
    }
}

/// The bytes of a branch site at `address`: `jmp target` when `taken`, else the `nop`.
///
/// `None` when the target is farther away than a 32-bit displacement reaches.
///
/// ```
/// use immediate_arch::isa::x86_64::{NOP, encode_branch};
/// assert_eq!(encode_branch(0x1000, 0x1105, true), Some([0xe9, 0x00, 0x01, 0, 0]));
/// assert_eq!(encode_branch(0x1000, 0x1105, false), Some(NOP));
/// assert_eq!(encode_branch(0x1000, 0x1_0000_0000, true), None);
/// ```
#[must_use]
#[inline]
pub fn encode_branch(address: usize, target: usize, taken: bool) -> Option<[u8; BRANCH_LENGTH]> {
    let next = address.wrapping_add(BRANCH_LENGTH);
    let displacement = i32::try_from(target.wrapping_sub(next).cast_signed()).ok()?;
    if !taken {
        return Some(NOP);
    }
    let [a, b, c, d] = displacement.to_le_bytes();
    Some([JMP, a, b, c, d])
}

#[inline]
const fn word(bytes: [u8; BRANCH_LENGTH]) -> u64 {
    let [a, b, c, d, e] = bytes;
    u64::from_le_bytes([a, b, c, d, e, 0, 0, 0])
}

#[inline]
fn head(code: &[u8]) -> [u8; 2] {
    [code.first().copied().unwrap_or(0), code.get(1).copied().unwrap_or(0)]
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
    let expected_width = if width > 4 { 8 } else { 4 };
    match decode(code) {
        Some(Instruction::Move { bits, field, width, .. })
            if width == expected_width && bits == old =>
        {
            Ok(Poke { address, old, new, field, width, head: head(code) })
        }
        found => Err(not_the_move(address, code, found, expected_width, old)),
    }
}

#[cold]
fn not_the_move(
    address: usize,
    code: &[u8],
    found: Option<Instruction>,
    width: u8,
    old: u64,
) -> Box<Mismatch> {
    let length = found.map_or(code.len(), |instruction| instruction.length());
    Box::new(Mismatch {
        address,
        found: code[..length.min(code.len())].to_vec(),
        expected: format!("mov with the {width}-byte immediate {old:#x}"),
    })
}

/// The change of a branch site at `address`, whose bytes are `code`.
///
/// # Errors
///
/// [`Mismatch`] when the code is not the `nop` or the jump to `target` that `old` says, or the
/// target is out of reach.
#[inline]
pub fn branch_poke(
    address: usize,
    code: &[u8],
    target: usize,
    old: bool,
    new: bool,
) -> Result<Poke, Box<Mismatch>> {
    // In words, not bytes: a load across what was stored byte by byte waits for the stores.
    let Some(found) = branch_word(code) else {
        return Err(not_the_branch(address, code.to_vec(), target, old));
    };
    let Some(jump) = jump_word(address, target) else {
        return Err(not_the_branch(address, bytes(found), target, old));
    };
    let nop = const { word(NOP) };
    let (before, after) = (if old { jump } else { nop }, if new { jump } else { nop });
    if found != before {
        return Err(not_the_branch(address, bytes(found), target, old));
    }
    let head = [before as u8, (before >> 8) as u8];
    Ok(Poke { address, old: before, new: after, field: 0, width: BRANCH_LENGTH as u8, head })
}

/// The bytes of `jmp target` as a number.
#[inline]
fn jump_word(address: usize, target: usize) -> Option<u64> {
    let next = address.wrapping_add(BRANCH_LENGTH);
    let displacement = i32::try_from(target.wrapping_sub(next).cast_signed()).ok()?;
    Some(u64::from(JMP) | u64::from(displacement.cast_unsigned()) << 8)
}

/// The bytes of a branch site as a number.
#[inline]
fn branch_word(code: &[u8]) -> Option<u64> {
    let (low, rest) = code.split_first_chunk()?;
    Some(u64::from(u32::from_le_bytes(*low)) | u64::from(*rest.first()?) << 32)
}

#[cold]
fn bytes(word: u64) -> Vec<u8> {
    word.to_le_bytes()[..BRANCH_LENGTH].to_vec()
}

#[cold]
fn not_the_branch(address: usize, found: Vec<u8>, target: usize, old: bool) -> Box<Mismatch> {
    let expected = if encode_branch(address, target, true).is_none() {
        format!("a jump to {target:#x}, which a 32-bit displacement cannot reach")
    } else if old {
        format!("jmp {target:#x}")
    } else {
        "the 5-byte nop".into()
    };
    Box::new(Mismatch { address, found, expected })
}

/// What the instruction of `poke` does when its field holds `field`.
///
/// Called in the trap handler: no allocation, no panic, whatever the bytes are.
#[must_use]
pub fn effect(poke: &Poke, field: u64) -> Effect {
    if poke.field == 0 {
        let [opcode, a, b, c, d, ..] = field.to_le_bytes();
        let next = poke.address.wrapping_add(BRANCH_LENGTH);
        let displacement = i32::from_le_bytes([a, b, c, d]) as isize;
        let next = if opcode == JMP { next.wrapping_add_signed(displacement) } else { next };
        return Effect { register: None, next };
    }
    let [first, second] = poke.head;
    let register = if poke.field == 1 { first & 7 } else { (second & 7) | ((first & 1) << 3) };
    let length = usize::from(poke.field) + usize::from(poke.width);
    Effect { register: Some((register, field)), next: poke.address.wrapping_add(length) }
}

/// Proves a text writer on a site of our own: patches it by `store` (address, word), executes it,
/// and patches it back.
///
/// # Errors
///
/// The failure of a store, or [`Reason::NotSeen`] when the site does not execute what was stored.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
pub fn probe(store: impl Fn(usize, u32) -> Result<(), Failure>) -> Result<(), Reason> {
    const OLD: u32 = 0x0ddb_a111;
    const NEW: u32 = 0x5eed_1234;

    /// The immediate begins one byte into the function and lies in one aligned word.
    #[unsafe(naked)]
    extern "C" fn site() -> u32 {
        std::arch::naked_asm!(".p2align 3", "mov eax, {old}", "ret", old = const OLD)
    }

    let run: extern "C" fn() -> u32 = std::hint::black_box(site);
    let field = run as usize + 1;
    for word in [NEW, OLD] {
        store(field, word).map_err(Reason::Failed)?;
        if run() != word {
            return Err(Reason::NotSeen);
        }
    }
    Ok(())
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
