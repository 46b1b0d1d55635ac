//! What x86-64 and i386 have in common: the five-byte branch, the trap, what a move does, and the
//! probe of a text writer.
//!
//! Sources: Intel SDM volume 2 (MOV, NOP, JMP, INT3).

use super::Effect;
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
use crate::os::Failure;
use crate::poke::{Mismatch, Poke};
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
use crate::status::Reason;

/// `int3`.
pub const TRAP: &[u8] = &[0xcc];
/// `int3` is a trap, not a fault: the program counter stands behind its one byte.
pub const TRAP_ADVANCE: usize = 1;

/// Length of a branch site, in both of its states. The templates emit
/// so many bytes.
pub const BRANCH_LENGTH: usize = 5;
/// The branch that is not taken: `nop dword ptr [eax + eax]`.
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
        /// Number of the general register, 0 to 15 (0 to 7 on i386).
        register: u8,
        /// The immediate, zero-extended.
        bits: u64,
        /// Offset of the immediate in bytes.
        field: u8,
        /// Width of the immediate in bytes, 4 or 8 (4 on i386).
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

/// The instruction that has the byte `prefix`, a REX of x86-64, before the bytes `rest`.
#[inline]
pub(super) fn decode(prefix: Option<u8>, rest: &[u8]) -> Option<Instruction> {
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
        _ if prefix.is_none() && rest.get(..BRANCH_LENGTH) == Some(&NOP) => Some(Instruction::Nop),
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

/// The change of a value site whose bytes `code` are the instruction `found`.
///
/// # Errors
///
/// [`Mismatch`] when that is not a move of exactly `old`.
#[inline]
pub(super) fn value_poke(
    address: usize,
    code: &[u8],
    found: Option<Instruction>,
    width: u8,
    old: u64,
    new: u64,
) -> Result<Poke, Box<Mismatch>> {
    let expected_width = if width > 4 { 8 } else { 4 };
    match found {
        Some(Instruction::Move { bits, field, width, .. })
            if width == expected_width && bits == old =>
        {
            if !is_aligned(address, field, width) {
                return Err(not_aligned(address, code));
            }
            Ok(Poke { address, old, new, field, width, head: head(code) })
        }
        found => Err(not_the_move(address, code, found, expected_width, old)),
    }
}

/// Whether a site lies as the templates align it: all that changes, and the first byte unless the field
/// is a word of its own, inside one aligned word of eight bytes. Protocols rely on it.
#[inline]
fn is_aligned(address: usize, field: u8, width: u8) -> bool {
    let (field, width) = (usize::from(field), usize::from(width));
    if width == 8 { (address + field).is_multiple_of(8) } else { address % 8 + field + width <= 8 }
}

#[cold]
fn not_aligned(address: usize, code: &[u8]) -> Box<Mismatch> {
    let expected = "an instruction inside one aligned word of eight bytes".into();
    Box::new(Mismatch { address, found: code.to_vec(), expected })
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
#[inline(always)]
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
    if !is_aligned(address, 0, BRANCH_LENGTH as u8) {
        return Err(not_aligned(address, &bytes(found)));
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
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
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
