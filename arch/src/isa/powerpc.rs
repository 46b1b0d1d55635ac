//! PowerPC, 32 and 64 bits, both byte orders: `li rX, imm16` for values of one and two bytes, `nop` / `b`
//! for branches.
//!
//! Sources: Power ISA version 3.1, book I sections 3.3.9 (`addi`, of which `li` is a form), 2.4 (`b`),
//! 3.3.11 (`tw`) and 3.3.13 (`ori`, of which `nop` is a form); book II sections 1.8 (instruction storage,
//! modified code) and 4.3 (`dcbst`, `icbi`); the ELF ABIs: PowerPC 32-bit, 64-bit version 1
//! (big-endian: a function's symbol is a descriptor) and version 2 (little-endian).
//!
//! # The sites
//!
//! | site | word | field that changes |
//! | --- | --- | --- |
//! | value, 1 or 2 bytes | `addi rX, 0, imm16` | the whole word |
//! | branch | `ori 0, 0, 0` or `b` with 26 bits of distance | the whole word |
//!
//! A site is one aligned word, so one store changes it and no thread sees half of it. `li` extends the
//! sign: the template takes the low 16 bits of the register and no others, so every value of two bytes
//! reads right, and values of one byte are never negative in 16 bits.
//!
//! A value of 4 or 8 bytes takes several instructions, and a thread can stand between two; it is read
//! from memory.
//!
//! A branch reaches 32 MiB to both sides. A change to a target out of reach is refused. The assembler
//! refuses a built branch that does not reach.
//!
//! The trap is a whole word too, so that nothing of a site remains to be changed under it, and the
//! program counter stands at the trap.
//!
//! The 32-bit target is not chosen yet (`isa/mod.rs`): under qemu-user its probe of `procmem` ended the
//! program, which is not understood. Its templates build, and `quadword` with `mprotect` ran.
//!
//! # Byte order
//!
//! Functions over words take numbers as the manual writes instructions. [`Poke`] holds bytes as they lie
//! in memory; [`in_memory`] and [`word_of`] go from one to the other, in the byte order of the host.

use super::Effect;
#[cfg(any(target_arch = "powerpc", target_arch = "powerpc64"))]
use crate::os::Failure;
use crate::poke::{Mismatch, Poke};
#[cfg(any(target_arch = "powerpc", target_arch = "powerpc64"))]
use crate::status::Reason;

/// Name of the target.
pub const NAME: &str = cfg_select! {
    target_arch = "powerpc" => { "powerpc" }
    target_endian = "little" => { "powerpc64le" }
    _ => { "powerpc64" }
};
/// `li` holds two bytes.
pub const MAX_VALUE: usize = 2;
/// Every instruction is a word.
pub const LONGEST: usize = 4;
/// Every instruction is a word.
pub const BRANCH_LENGTH: usize = 4;
/// `trap`, which is `tw 31, 0, 0`.
pub const TRAP_WORD: u32 = 0x7fe0_0008;
/// `trap`, as it lies in memory.
pub const TRAP: &[u8] = &TRAP_WORD.to_ne_bytes();
/// The program counter stands at the trap.
pub const TRAP_ADVANCE: usize = 0;
/// The branch that is not taken: `nop`, which is `ori 0, 0, 0`.
pub const NOP: u32 = 0x6000_0000;
/// `b` with the distance 0.
const BRANCH: u32 = 0x4800_0000;
/// The bits of `b` that hold the distance.
const DISTANCE: u32 = 0x03ff_fffc;
/// `addi 0, 0, 0`.
const LOAD: u32 = 0x3800_0000;

/// An instruction that can stand at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// `li register, immediate`.
    Load {
        /// Number of the general register, 0 to 31.
        register: u8,
        /// The immediate, whose sign is extended to the width of the register.
        immediate: i16,
    },
    /// `nop`.
    Nop,
    /// `b`, relative to the instruction itself.
    Jump {
        /// Signed distance in bytes from the instruction.
        distance: i32,
    },
}

/// The instruction that a word is, or `None` if it cannot be one of ours.
///
/// ```
/// use immediate_arch::isa::powerpc::{Instruction, decode};
/// assert_eq!(decode(0x3860_ffff), Some(Instruction::Load { register: 3, immediate: -1 }));
/// assert_eq!(decode(0x4bff_fffc), Some(Instruction::Jump { distance: -4 }));
/// assert_eq!(decode(0x3863_ffff), None); // adds to a register
/// ```
#[must_use]
#[inline]
pub fn decode(word: u32) -> Option<Instruction> {
    if word == NOP {
        Some(Instruction::Nop)
    } else if word & !DISTANCE == BRANCH {
        Some(Instruction::Jump { distance: ((word & DISTANCE) << 6).cast_signed() >> 6 })
    } else if word & 0xfc1f_0000 == LOAD {
        let register = (word >> 21 & 31) as u8;
        Some(Instruction::Load { register, immediate: low_half(word.into()) })
    } else {
        None
    }
}

/// `li register` with the low 16 bits of `bits`.
///
/// ```
/// use immediate_arch::isa::powerpc::encode_load;
/// assert_eq!(encode_load(3, 0x8000), 0x3860_8000);
/// ```
#[must_use]
#[inline]
pub fn encode_load(register: u8, bits: u64) -> u32 {
    LOAD | u32::from(register & 31) << 21 | bits as u32 & 0xffff
}

/// The word of a branch site at `address`: `b target` when `taken`, else the `nop`.
///
/// `None` when the target is farther away than 26 bits of distance reach, or is no instruction.
///
/// ```
/// use immediate_arch::isa::powerpc::{NOP, encode_branch};
/// assert_eq!(encode_branch(0x1000, 0x1100, true), Some(0x4800_0100));
/// assert_eq!(encode_branch(0x1000, 0x1100, false), Some(NOP));
/// assert_eq!(encode_branch(0x1000, 0x0200_1000, true), None);
/// ```
#[must_use]
#[inline]
pub fn encode_branch(address: usize, target: usize, taken: bool) -> Option<u32> {
    let distance = i32::try_from(target.wrapping_sub(address).cast_signed()).ok()?;
    if distance % 4 != 0 || !(-0x0200_0000..0x0200_0000).contains(&distance) {
        return None;
    }
    Some(if taken { BRANCH | distance.cast_unsigned() & DISTANCE } else { NOP })
}

/// The low 16 bits, as `li` takes them.
#[must_use]
pub const fn low_half(bits: u64) -> i16 {
    bits as i16
}

/// The bytes of an instruction as they lie in memory, the first the lowest.
#[must_use]
#[inline]
pub fn in_memory(word: u32) -> u64 {
    word.to_le().into()
}

/// The instruction whose bytes in memory are the lowest four of `field`, the first the lowest.
#[must_use]
#[inline]
pub fn word_of(field: u64) -> u32 {
    u32::from_le(field as u32)
}

fn word_at(code: &[u8]) -> Option<u32> {
    code.first_chunk().copied().map(u32::from_ne_bytes)
}

fn poke(address: usize, old: u32, new: u32) -> Poke {
    let [first, second, ..] = old.to_ne_bytes();
    let (old, new) = (in_memory(old), in_memory(new));
    Poke { address, old, new, field: 0, width: 4, head: [first, second] }
}

/// Bytes of code that must be read to decode a site for a value of `width` bytes.
#[must_use]
#[inline]
pub fn value_length(_width: u8) -> usize {
    LONGEST
}

/// The change of a value site of `width` bytes at `address`, whose bytes are `code`, from `old`
/// to `new` (both zero-extended from `width`).
///
/// # Errors
///
/// [`Mismatch`] when the code is not a load of exactly `old`.
#[inline]
pub fn value_poke(
    address: usize,
    code: &[u8],
    width: u8,
    old: u64,
    new: u64,
) -> Result<Poke, Box<Mismatch>> {
    let found = word_at(code);
    match found.and_then(decode) {
        Some(Instruction::Load { register, .. })
            if width <= 2 && found == Some(encode_load(register, old)) && old <= 0xffff =>
        {
            Ok(poke(address, encode_load(register, old), encode_load(register, new)))
        }
        _ => Err(mismatch(address, code, format!("li with the immediate {:#x}", low_half(old)))),
    }
}

/// The change of a branch site at `address`, whose bytes are `code`.
///
/// # Errors
///
/// [`Mismatch`] when the code is not the `nop` or the branch to `target` that `old` says, or the
/// target is out of reach.
#[inline]
pub fn branch_poke(
    address: usize,
    code: &[u8],
    target: usize,
    old: bool,
    new: bool,
) -> Result<Poke, Box<Mismatch>> {
    let words = [old, new].map(|taken| encode_branch(address, target, taken));
    if let [Some(before), Some(after)] = words
        && word_at(code) == Some(before)
    {
        return Ok(poke(address, before, after));
    }
    let expected = if words[0].is_none() {
        format!("a branch to {target:#x}, which 26 bits of distance cannot reach")
    } else if old {
        format!("b {target:#x}")
    } else {
        "nop".into()
    };
    Err(mismatch(address, code, expected))
}

#[cold]
fn mismatch(address: usize, code: &[u8], expected: String) -> Box<Mismatch> {
    Box::new(Mismatch { address, found: code[..code.len().min(LONGEST)].to_vec(), expected })
}

/// What the instruction of `poke` does when its field holds `field`.
///
/// Called in the trap handler: no allocation, no panic, whatever the bytes are.
#[must_use]
pub fn effect(poke: &Poke, field: u64) -> Effect {
    let next = poke.address.wrapping_add(LONGEST);
    match decode(word_of(field)) {
        Some(Instruction::Load { register, immediate }) => {
            let bits = i64::from(immediate).cast_unsigned();
            Effect { register: Some((register, bits)), next }
        }
        Some(Instruction::Jump { distance }) => {
            Effect { register: None, next: poke.address.wrapping_add_signed(distance as isize) }
        }
        Some(Instruction::Nop) | None => Effect { register: None, next },
    }
}

/// Sizes of the lines of the caches, in bytes: powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// Of the data cache.
    pub data: usize,
    /// Of the instruction cache.
    pub instruction: usize,
}

/// A step on the way of stored code to the processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `dcbst`: the line that holds this address goes to memory.
    StoreLine(usize),
    /// `sync`: what was asked for before has happened.
    Sync,
    /// `icbi`: the line that holds this address is fetched anew.
    InvalidateLine(usize),
    /// `isync`: this processor forgets what it has fetched.
    Forget,
}

/// The steps that bring code which was stored in `ranges` to all processors' caches (Power ISA book II,
/// section 1.8). A range ends *before* its end, which is an address, no length.
///
/// ```
/// use immediate_arch::isa::powerpc::{Lines, Step, coherence};
/// let mut steps = Vec::new();
/// coherence([0x100..0x104].into_iter(), Lines { data: 32, instruction: 32 }, |s| steps.push(s));
/// assert_eq!(
///     steps,
///     [Step::StoreLine(0x100), Step::Sync, Step::InvalidateLine(0x100), Step::Sync, Step::Forget],
/// );
/// ```
pub fn coherence(
    ranges: impl Iterator<Item = std::ops::Range<usize>> + Clone,
    lines: Lines,
    mut carry_out: impl FnMut(Step),
) {
    for range in ranges.clone() {
        lines_of(range, lines.data).for_each(|line| carry_out(Step::StoreLine(line)));
    }
    carry_out(Step::Sync);
    for range in ranges {
        lines_of(range, lines.instruction).for_each(|line| carry_out(Step::InvalidateLine(line)));
    }
    carry_out(Step::Sync);
    carry_out(Step::Forget);
}

fn lines_of(range: std::ops::Range<usize>, size: usize) -> impl Iterator<Item = usize> {
    let first = range.start & !(size - 1);
    (first..range.end).step_by(size)
}

/// Proves a text writer on a site of our own: patches it by `store` (address, word), executes it,
/// and patches it back.
///
/// # Errors
///
/// The failure of a store, or [`Reason::NotSeen`] when the site does not execute what was stored.
#[cfg(any(target_arch = "powerpc", target_arch = "powerpc64"))]
#[allow(unsafe_code)]
pub fn probe(store: impl Fn(usize, u32) -> Result<(), Failure>) -> Result<(), Reason> {
    const REGISTER: u8 = 3;
    const OLD: u64 = 0x1a11;
    const NEW: u64 = 0x5eed;

    /// Runs the site; gives what it loads and where it is.
    #[inline(never)]
    fn site() -> (u64, usize) {
        let (loaded, site): (usize, usize);
        // SAFETY: takes its own address by a branch to the next instruction, which the link register
        // is clobbered by; touches no memory and no stack.
        unsafe {
            std::arch::asm!(
                "bcl 20, 31, 2f",
                "2:",
                "mflr {site}",
                "addi {site}, {site}, 8",
                "li 3, {old}",
                old = const OLD,
                site = out(reg_nonzero) site,
                out("3") loaded,
                out("lr") _,
                options(nomem, nostack, preserves_flags),
            );
        }
        (loaded as u64, site)
    }

    let (_, address) = site();
    for bits in [NEW, OLD] {
        let word = encode_load(REGISTER, bits);
        store(address, in_memory(word) as u32).map_err(Reason::Failed)?;
        if site().0 != bits {
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
macro_rules! __powerpc_module {
    () => {
        ::core::concat!("
        .ifndef __immediate_enter_0_1_0
        ", $crate::__powerpc_enter!(), "
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
        ")
    };
}

/// The constructor and the destructor: they hand the header to the runtime, through pointers that the
/// dynamic loader fills, so that the runtime may lie in another shared object.
#[doc(hidden)]
#[macro_export]
#[cfg(target_arch = "powerpc")]
macro_rules! __powerpc_enter {
    () => {
        "
        .pushsection .text.__immediate_enter_0_1_0,\"axG\",@progbits,__immediate_enter_0_1_0,comdat
        .balign 4
        .weak __immediate_enter_0_1_0
        .hidden __immediate_enter_0_1_0
        .type __immediate_enter_0_1_0,@function
        __immediate_enter_0_1_0:
        mflr 0
        stwu 1, -16(1)
        stw 0, 20(1)
        bcl 20, 31, .L__immediate_enter_here_0_1_0
        .L__immediate_enter_here_0_1_0:
        mflr 9
        addis 3, 9, __immediate_header_0_1_0 - .L__immediate_enter_here_0_1_0@ha
        addi 3, 3, __immediate_header_0_1_0 - .L__immediate_enter_here_0_1_0@l
        addis 12, 9, __immediate_doors_0_1_0 - .L__immediate_enter_here_0_1_0@ha
        addi 12, 12, __immediate_doors_0_1_0 - .L__immediate_enter_here_0_1_0@l
        lwz 12, 0(12)
        mtctr 12
        bctrl
        lwz 0, 20(1)
        mtlr 0
        addi 1, 1, 16
        blr
        .size __immediate_enter_0_1_0, . - __immediate_enter_0_1_0
        .weak __immediate_leave_0_1_0
        .hidden __immediate_leave_0_1_0
        .type __immediate_leave_0_1_0,@function
        __immediate_leave_0_1_0:
        mflr 0
        stwu 1, -16(1)
        stw 0, 20(1)
        bcl 20, 31, .L__immediate_leave_here_0_1_0
        .L__immediate_leave_here_0_1_0:
        mflr 9
        addis 3, 9, __immediate_header_0_1_0 - .L__immediate_leave_here_0_1_0@ha
        addi 3, 3, __immediate_header_0_1_0 - .L__immediate_leave_here_0_1_0@l
        addis 12, 9, __immediate_doors_0_1_0 - .L__immediate_leave_here_0_1_0@ha
        addi 12, 12, __immediate_doors_0_1_0 - .L__immediate_leave_here_0_1_0@l
        lwz 12, 4(12)
        mtctr 12
        bctrl
        lwz 0, 20(1)
        mtlr 0
        addi 1, 1, 16
        blr
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
        .pushsection .init_array.00001,\"awG\",@init_array,__immediate_enter_0_1_0,comdat
        .balign 4
        .long __immediate_enter_0_1_0
        .popsection
        .pushsection .fini_array.00001,\"awG\",@fini_array,__immediate_enter_0_1_0,comdat
        .balign 4
        .long __immediate_leave_0_1_0
        .popsection
        "
    };
}

/// As above, in the ELF ABI version 2.
#[doc(hidden)]
#[macro_export]
#[cfg(all(target_arch = "powerpc64", target_endian = "little"))]
macro_rules! __powerpc_enter {
    () => {
        "
        .pushsection .text.__immediate_enter_0_1_0,\"axG\",@progbits,__immediate_enter_0_1_0,comdat
        .balign 4
        .weak __immediate_enter_0_1_0
        .hidden __immediate_enter_0_1_0
        .type __immediate_enter_0_1_0,@function
        __immediate_enter_0_1_0:
        mflr 0
        std 0, 16(1)
        stdu 1, -112(1)
        std 2, 40(1)
        bcl 20, 31, .L__immediate_enter_here_0_1_0
        .L__immediate_enter_here_0_1_0:
        mflr 9
        addis 3, 9, __immediate_header_0_1_0 - .L__immediate_enter_here_0_1_0@ha
        addi 3, 3, __immediate_header_0_1_0 - .L__immediate_enter_here_0_1_0@l
        addis 12, 9, __immediate_doors_0_1_0 - .L__immediate_enter_here_0_1_0@ha
        addi 12, 12, __immediate_doors_0_1_0 - .L__immediate_enter_here_0_1_0@l
        ld 12, 0(12)
        mtctr 12
        bctrl
        ld 2, 40(1)
        addi 1, 1, 112
        ld 0, 16(1)
        mtlr 0
        blr
        .size __immediate_enter_0_1_0, . - __immediate_enter_0_1_0
        .weak __immediate_leave_0_1_0
        .hidden __immediate_leave_0_1_0
        .type __immediate_leave_0_1_0,@function
        __immediate_leave_0_1_0:
        mflr 0
        std 0, 16(1)
        stdu 1, -112(1)
        std 2, 40(1)
        bcl 20, 31, .L__immediate_leave_here_0_1_0
        .L__immediate_leave_here_0_1_0:
        mflr 9
        addis 3, 9, __immediate_header_0_1_0 - .L__immediate_leave_here_0_1_0@ha
        addi 3, 3, __immediate_header_0_1_0 - .L__immediate_leave_here_0_1_0@l
        addis 12, 9, __immediate_doors_0_1_0 - .L__immediate_leave_here_0_1_0@ha
        addi 12, 12, __immediate_doors_0_1_0 - .L__immediate_leave_here_0_1_0@l
        ld 12, 8(12)
        mtctr 12
        bctrl
        ld 2, 40(1)
        addi 1, 1, 112
        ld 0, 16(1)
        mtlr 0
        blr
        .size __immediate_leave_0_1_0, . - __immediate_leave_0_1_0
        .popsection
        .pushsection .data.rel.ro.__immediate_doors_0_1_0,\"awG\",@progbits,__immediate_enter_0_1_0,comdat
        .balign 8
        .weak __immediate_doors_0_1_0
        .hidden __immediate_doors_0_1_0
        .type __immediate_doors_0_1_0,@object
        __immediate_doors_0_1_0:
        .quad {enter}
        .quad {leave}
        .size __immediate_doors_0_1_0, . - __immediate_doors_0_1_0
        .popsection
        .pushsection .init_array.00001,\"awG\",@init_array,__immediate_enter_0_1_0,comdat
        .balign 8
        .quad __immediate_enter_0_1_0
        .popsection
        .pushsection .fini_array.00001,\"awG\",@fini_array,__immediate_enter_0_1_0,comdat
        .balign 8
        .quad __immediate_leave_0_1_0
        .popsection
        "
    };
}

/// As above, in the ELF ABI version 1: a pointer to a function is the address of a descriptor.
#[doc(hidden)]
#[macro_export]
#[cfg(not(any(
    target_arch = "powerpc",
    all(target_arch = "powerpc64", target_endian = "little")
)))]
macro_rules! __powerpc_enter {
    () => {
        "
        .pushsection .text.__immediate_enter_0_1_0,\"axG\",@progbits,__immediate_enter_0_1_0,comdat
        .balign 4
        .weak __immediate_enter_code_0_1_0
        .hidden __immediate_enter_code_0_1_0
        .type __immediate_enter_code_0_1_0,@function
        __immediate_enter_code_0_1_0:
        mflr 0
        std 0, 16(1)
        stdu 1, -112(1)
        std 2, 40(1)
        bcl 20, 31, .L__immediate_enter_here_0_1_0
        .L__immediate_enter_here_0_1_0:
        mflr 9
        addis 3, 9, __immediate_header_0_1_0 - .L__immediate_enter_here_0_1_0@ha
        addi 3, 3, __immediate_header_0_1_0 - .L__immediate_enter_here_0_1_0@l
        addis 12, 9, __immediate_doors_0_1_0 - .L__immediate_enter_here_0_1_0@ha
        addi 12, 12, __immediate_doors_0_1_0 - .L__immediate_enter_here_0_1_0@l
        ld 12, 0(12)
        ld 2, 8(12)
        ld 12, 0(12)
        mtctr 12
        bctrl
        ld 2, 40(1)
        addi 1, 1, 112
        ld 0, 16(1)
        mtlr 0
        blr
        .size __immediate_enter_code_0_1_0, . - __immediate_enter_code_0_1_0
        .weak __immediate_leave_code_0_1_0
        .hidden __immediate_leave_code_0_1_0
        .type __immediate_leave_code_0_1_0,@function
        __immediate_leave_code_0_1_0:
        mflr 0
        std 0, 16(1)
        stdu 1, -112(1)
        std 2, 40(1)
        bcl 20, 31, .L__immediate_leave_here_0_1_0
        .L__immediate_leave_here_0_1_0:
        mflr 9
        addis 3, 9, __immediate_header_0_1_0 - .L__immediate_leave_here_0_1_0@ha
        addi 3, 3, __immediate_header_0_1_0 - .L__immediate_leave_here_0_1_0@l
        addis 12, 9, __immediate_doors_0_1_0 - .L__immediate_leave_here_0_1_0@ha
        addi 12, 12, __immediate_doors_0_1_0 - .L__immediate_leave_here_0_1_0@l
        ld 12, 8(12)
        ld 2, 8(12)
        ld 12, 0(12)
        mtctr 12
        bctrl
        ld 2, 40(1)
        addi 1, 1, 112
        ld 0, 16(1)
        mtlr 0
        blr
        .size __immediate_leave_code_0_1_0, . - __immediate_leave_code_0_1_0
        .popsection
        .pushsection .data.rel.ro.__immediate_descriptors_0_1_0,\"awG\",@progbits,__immediate_enter_0_1_0,comdat
        .balign 8
        .weak __immediate_enter_0_1_0
        .hidden __immediate_enter_0_1_0
        .type __immediate_enter_0_1_0,@object
        __immediate_enter_0_1_0:
        .quad __immediate_enter_code_0_1_0
        .quad .TOC.@tocbase
        .quad 0
        .size __immediate_enter_0_1_0, . - __immediate_enter_0_1_0
        .weak __immediate_leave_0_1_0
        .hidden __immediate_leave_0_1_0
        .type __immediate_leave_0_1_0,@object
        __immediate_leave_0_1_0:
        .quad __immediate_leave_code_0_1_0
        .quad .TOC.@tocbase
        .quad 0
        .size __immediate_leave_0_1_0, . - __immediate_leave_0_1_0
        .popsection
        .pushsection .data.rel.ro.__immediate_doors_0_1_0,\"awG\",@progbits,__immediate_enter_0_1_0,comdat
        .balign 8
        .weak __immediate_doors_0_1_0
        .hidden __immediate_doors_0_1_0
        .type __immediate_doors_0_1_0,@object
        __immediate_doors_0_1_0:
        .quad {enter}
        .quad {leave}
        .size __immediate_doors_0_1_0, . - __immediate_doors_0_1_0
        .popsection
        .pushsection .init_array.00001,\"awG\",@init_array,__immediate_enter_0_1_0,comdat
        .balign 8
        .quad __immediate_enter_0_1_0
        .popsection
        .pushsection .fini_array.00001,\"awG\",@fini_array,__immediate_enter_0_1_0,comdat
        .balign 8
        .quad __immediate_leave_0_1_0
        .popsection
        "
    };
}

/// Emits, once per object file and variable, a pointer to the variable: what a record refers to. As on
/// i386, PowerPC has no relocation for the distance to a slot of the global offset table.
#[doc(hidden)]
#[macro_export]
macro_rules! __powerpc_slot {
    () => {
        ::core::concat!("
        .ifndef __immediate_slot_0_1_0_{variable}
        .pushsection .data.rel.ro.__immediate_slot_0_1_0_{variable},\"awG\",@progbits,__immediate_slot_0_1_0_{variable},comdat
        .balign 8
        .weak __immediate_slot_0_1_0_{variable}
        .hidden __immediate_slot_0_1_0_{variable}
        .type __immediate_slot_0_1_0_{variable},@object
        __immediate_slot_0_1_0_{variable}:
        ", $crate::__powerpc_pointer!(), " {variable}
        .size __immediate_slot_0_1_0_{variable}, . - __immediate_slot_0_1_0_{variable}
        .popsection
        .endif
        ")
    };
}

/// The directive for a pointer.
#[doc(hidden)]
#[macro_export]
#[cfg(target_arch = "powerpc")]
macro_rules! __powerpc_pointer {
    () => {
        ".long"
    };
}

/// The directive for a pointer.
#[doc(hidden)]
#[macro_export]
#[cfg(not(target_arch = "powerpc"))]
macro_rules! __powerpc_pointer {
    () => {
        ".quad"
    };
}

/// The relocation that ties a site to its record.
#[doc(hidden)]
#[macro_export]
#[cfg(target_arch = "powerpc")]
macro_rules! __powerpc_tie {
    () => {
        ".reloc 2b, R_PPC_NONE, 3f"
    };
}

/// The relocation that ties a site to its record.
#[doc(hidden)]
#[macro_export]
#[cfg(not(target_arch = "powerpc"))]
macro_rules! __powerpc_tie {
    () => {
        ".reloc 2b, R_PPC64_NONE, 3f"
    };
}

// Every site carries one relocation more, of the kind that changes nothing, against its own record
// (`3:`). It keeps the record as long as the code, and it makes the code of two sites differ for a
// linker that folds identical functions (`--icf=all`): two sites may be the same instruction and
// still branch on opposite outcomes. Not against the variable: GNU ld cannot resolve that when the
// variable lies in another shared object.

/// A value site: expands to an expression of type `u64`, the bits of the value zero-extended.
///
/// `size` is the size of the value in bytes (1 or 2), which the instruction does not depend on, `bits`
/// its built-in bits.
#[doc(hidden)]
#[macro_export]
macro_rules! __powerpc_value {
    ($enter:path, $leave:path, $variable:path, $size:expr, $bits:expr) => {{
        let bits: ::core::primitive::u16;
        // SAFETY: loads an immediate into a register that the compiler chose; touches no flags, no
        // memory and no stack. The other sections hold data and the module's constructor.
        unsafe {
            ::core::arch::asm!(
                "2:",
                "li {out}, {bits}",
                $crate::__powerpc_tie!(),
                ".pushsection immediate_sites_0_1_0,\"aR\",@progbits",
                ".balign 4",
                "3:",
                ".long 2b - .",
                ".long __immediate_slot_0_1_0_{variable} - .",
                ".long 0",
                ".popsection",
                $crate::__powerpc_slot!(),
                $crate::__powerpc_module!(),
                out = out(reg) bits,
                bits = const $crate::isa::powerpc::low_half($bits),
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
macro_rules! __powerpc_branch {
    ($enter:path, $leave:path, $variable:path, $kind:expr, $jump:expr, $arm:block) => {
        // SAFETY: a nop, or a jump to a block that the compiler knows as a successor; touches no
        // register, no flags, no memory and no stack.
        unsafe {
            ::core::arch::asm!(
                "2:",
                ".if {jump}",
                "b {target}",
                ".else",
                "nop",
                ".endif",
                $crate::__powerpc_tie!(),
                ".pushsection immediate_sites_0_1_0,\"aR\",@progbits",
                ".balign 4",
                "3:",
                ".long 2b - .",
                ".long __immediate_slot_0_1_0_{variable} - . + {kind}",
                ".long {target} - .",
                ".popsection",
                $crate::__powerpc_slot!(),
                $crate::__powerpc_module!(),
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
macro_rules! __powerpc_comparison {
    ($enter:path, $leave:path, $variable:path, $kind:expr, $jump:expr, $operator:expr, $constant:expr, $arm:block) => {
        // SAFETY: as for a branch site.
        unsafe {
            ::core::arch::asm!(
                "2:",
                ".if {jump}",
                "b {target}",
                ".else",
                "nop",
                ".endif",
                $crate::__powerpc_tie!(),
                ".pushsection immediate_comparisons_0_1_0,\"aR\",@progbits",
                ".balign 8",
                "3:",
                ".long 2b - .",
                ".long __immediate_slot_0_1_0_{variable} - . + {kind}",
                ".long {target} - .",
                ".long {operator}",
                ".quad {constant}",
                ".popsection",
                $crate::__powerpc_slot!(),
                $crate::__powerpc_module!(),
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
macro_rules! __powerpc_test {
    ($enter:path, $leave:path, $variable:path, $kind:expr, $test:path, $arm:block) => {
        // SAFETY: as for a branch site.
        unsafe {
            ::core::arch::asm!(
                "2:",
                "nop",
                $crate::__powerpc_tie!(),
                ".pushsection immediate_tests_0_1_0,\"aR\",@progbits",
                ".balign 4",
                "3:",
                ".long 2b - .",
                ".long __immediate_slot_0_1_0_{variable} - . + {kind}",
                ".long {target} - .",
                ".long {test} - .",
                ".popsection",
                $crate::__powerpc_slot!(),
                $crate::__powerpc_module!(),
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
macro_rules! __powerpc_variable {
    ($enter:path, $leave:path, $variable:path) => {
        // SAFETY: emits data and the module's constructor; no instruction stands here.
        unsafe {
            ::core::arch::asm!(
                ".pushsection immediate_variables_0_1_0,\"aR\",@progbits",
                ".balign 4",
                ".long __immediate_slot_0_1_0_{variable} - .",
                ".popsection",
                $crate::__powerpc_slot!(),
                $crate::__powerpc_module!(),
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
macro_rules! __powerpc_select {
    ({ $($with:tt)* } { $($without:tt)* }) => { $($with)* };
}

pub use crate::{
    __powerpc_branch as branch_site, __powerpc_comparison as comparison_site,
    __powerpc_select as select, __powerpc_test as test_site, __powerpc_value as value_site,
    __powerpc_variable as variable_record,
};
