//! The x86-64 encoders and the decoder, judged by a disassembler that is not ours.
//!
//! What is wrong here is written into the text of a running program: a register taken for another, a
//! displacement that wraps, an opcode accepted that is not ours. The functions are pure, so the same
//! tests run on every host.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction as Judged, OpKind, Register};
use immediate_arch::isa::Effect;
use immediate_arch::isa::x86_64::{
    BRANCH_LENGTH, Instruction, JMP, LONGEST, NOP, TRAP, branch_poke, decode, effect,
    encode_branch, value_length, value_poke,
};
use immediate_arch::{Mismatch, Poke};
use proptest::prelude::*;

/// Number of `rsp`, which no compiler gives to a value; nothing in the encoders depends on it.
const RSP: u8 = 4;

const WIDE: [Register; 16] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RBX,
    Register::RSP,
    Register::RBP,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

fn judge(code: &[u8], address: usize) -> Judged {
    Decoder::with_ip(64, code, address as u64, DecoderOptions::NONE).decode()
}

/// The move as an assembler writes it.
fn assemble(register: u8, bits: u64, width: u8) -> Vec<u8> {
    let mut code = Vec::new();
    let (rex, opcode) = (0x40 | register >> 3, 0xb8 | register & 7);
    match width {
        8 => code.extend([rex | 8, opcode]),
        _ if register >= 8 => code.extend([rex, opcode]),
        _ => code.push(opcode),
    }
    code.extend(&bits.to_le_bytes()[..usize::from(width)]);
    code
}

/// What the disassembler says that an instruction does.
fn judged_effect(judged: &Judged) -> Effect {
    let next = judged.next_ip() as usize;
    match judged.code() {
        Code::Nop_rm32 | Code::Nop_rm64 => Effect { register: None, next },
        Code::Jmp_rel32_64 => Effect { register: None, next: judged.near_branch_target() as usize },
        Code::Mov_r32_imm32 | Code::Mov_r64_imm64 => {
            let full = judged.op0_register().full_register();
            let number = WIDE.iter().position(|one| *one == full).expect("a general register");
            Effect { register: Some((number as u8, judged.immediate(1))), next }
        }
        other => panic!("not an instruction of a site: {other:?}"),
    }
}

/// Carries a poke out on a copy of the code.
fn poked(poke: &Poke, code: &[u8], field: u64) -> Vec<u8> {
    let mut code = code.to_vec();
    let start = usize::from(poke.field);
    let width = usize::from(poke.width);
    code[start..start + width].copy_from_slice(&field.to_le_bytes()[..width]);
    code
}

const BITS_32: [u64; 8] = [0, 1, 0x7f, 0x80, 0xcc, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
const BITS_64: [u64; 6] =
    [0, 0x1_0000_0000, 0x7fff_ffff_ffff_ffff, 1 << 63, 0xcccc_cccc_cccc_cccc, u64::MAX];

#[test]
fn moves_into_every_register() {
    for register in (0..16).filter(|register| *register != RSP) {
        for (width, all) in [(4, &BITS_32[..]), (8, &BITS_64[..])] {
            for &bits in all {
                let code = assemble(register, bits, width);
                let field = (code.len() - usize::from(width)) as u8;
                let expected = Instruction::Move { register, bits, field, width };
                assert_eq!(decode(&code), Some(expected), "{code:02x?}");
                assert_eq!(expected.length(), code.len());

                let at = aligned(0x1000, field, width);
                let judged = judge(&code, at);
                assert_eq!(judged.len(), code.len(), "{judged}");
                let offsets = Decoder::with_ip(64, &code, at as u64, DecoderOptions::NONE)
                    .get_constant_offsets(&judged);
                assert_eq!(offsets.immediate_offset(), usize::from(field), "{judged}");
                assert_eq!(offsets.immediate_size(), usize::from(width), "{judged}");

                for &new in all {
                    let poke = value_poke(at, &code, width, bits, new).expect("it is ours");
                    assert_eq!((poke.old, poke.new), (bits, new));
                    assert_eq!((poke.field, poke.width), (field, width));
                    assert_eq!(poke.field_address(), at + usize::from(field));
                    assert_eq!(poke.new_first_byte(), code[0], "the opcode stays");
                    let after = poked(&poke, &code, new);
                    assert_eq!(effect(&poke, new), judged_effect(&judge(&after, at)));
                    assert_eq!(effect(&poke, bits), judged_effect(&judged));
                }
            }
        }
    }
}

/// A value of one or two bytes lies zero-extended in four.
#[test]
fn narrow_values() {
    let code = assemble(13, 0xff, 4);
    for width in [1, 2, 4] {
        let poke = value_poke(0, &code, width, 0xff, 0x80).expect("it is ours");
        assert_eq!((poke.field, poke.width, poke.new), (2, 4, 0x80));
        assert_eq!(effect(&poke, 0x80).register, Some((13, 0x80)));
        assert_eq!(value_length(width), 6);
    }
    assert_eq!(value_length(8), LONGEST);
    // Sign-extended, the code would hold -1: not what the record says.
    let code = assemble(13, 0xffff_ffff, 4);
    assert!(value_poke(0, &code, 1, 0xff, 0).is_err());
}

#[test]
fn the_nop_is_one_instruction() {
    let judged = judge(&NOP, 0);
    assert_eq!((judged.code(), judged.len()), (Code::Nop_rm32, BRANCH_LENGTH));
    assert_eq!(decode(&NOP), Some(Instruction::Nop));
    assert_eq!(Instruction::Nop.length(), BRANCH_LENGTH);
    assert_eq!(judge(TRAP, 0).code(), Code::Int3);
}

#[test]
fn jumps_as_far_as_they_reach() {
    let address = 0x7000_0000_0000_usize;
    let end = address + BRANCH_LENGTH;
    let reached = [0, 1, -1, -5, 0x7f, -0x80, 0xcc, i64::from(i32::MAX), i64::from(i32::MIN)];
    for distance in reached {
        let target = end.wrapping_add_signed(distance as isize);
        let code = encode_branch(address, target, true).expect("within reach");
        let judged = judge(&code, address);
        assert_eq!((judged.code(), judged.len()), (Code::Jmp_rel32_64, BRANCH_LENGTH));
        assert_eq!(judged.op0_kind(), OpKind::NearBranch64);
        assert_eq!(judged.near_branch_target(), target as u64);
        let displacement = i32::try_from(distance).expect("within reach");
        assert_eq!(decode(&code), Some(Instruction::Jump { displacement }));
        assert_eq!(encode_branch(address, target, false), Some(NOP));

        let poke = branch_poke(address, &NOP, target, false, true).expect("it is ours");
        assert_eq!((poke.field, poke.width, poke.head), (0, 5, [NOP[0], NOP[1]]));
        assert_eq!((poke.old_first_byte(), poke.new_first_byte()), (NOP[0], JMP));
        assert_eq!(poked(&poke, &NOP, poke.new), code);
        assert_eq!(effect(&poke, poke.new), Effect { register: None, next: target });
        assert_eq!(effect(&poke, poke.old), Effect { register: None, next: end });
        let back = branch_poke(address, &code, target, true, false).expect("it is ours");
        assert_eq!(back, poke.reversed());
    }
    for beyond in [i64::from(i32::MAX) + 1, i64::from(i32::MIN) - 1, 1 << 32, -(1 << 40)] {
        let target = end.wrapping_add_signed(beyond as isize);
        for taken in [true, false] {
            assert_eq!(encode_branch(address, target, taken), None, "{beyond:#x}");
            let code = if taken { [JMP, 0, 0, 0, 0] } else { NOP };
            let Mismatch { expected, address: at, .. } =
                *branch_poke(address, &code, target, taken, !taken).expect_err("out of reach");
            assert!(expected.contains("cannot reach"), "{expected}");
            assert_eq!(at, address);
        }
    }
}

/// At the ends of the address space the sums wrap as the processor's do.
#[test]
fn addresses_wrap() {
    for (address, target) in [(0, usize::MAX), (usize::MAX - 4, 7), (usize::MAX - 4, usize::MAX)] {
        let code = encode_branch(address, target, true).expect("within reach");
        let poke = branch_poke(address, &code, target, true, false).expect("it is ours");
        assert_eq!(effect(&poke, poke.old).next, target);
        assert_eq!(effect(&poke, poke.new).next, address.wrapping_add(BRANCH_LENGTH));
        assert_eq!(judge(&code, address).near_branch_target(), target as u64);
    }
}

/// An address at which the templates would put a site.
fn aligned(address: usize, field: u8, width: u8) -> usize {
    let (field, width) = (usize::from(field), usize::from(width));
    let offset = if width == 8 { 8 - field } else { address % 8 % (9 - field - width) };
    (address & !7) + offset
}

/// A site that was moved into two words cannot be changed by one store.
#[test]
fn sites_lie_inside_one_word() {
    let (nop, short, long) = (NOP, assemble(9, 7, 4), assemble(9, 7, 8));
    for offset in 0..8 {
        let at = 0x1000 + offset;
        assert_eq!(branch_poke(at, &nop, 0x2000, false, true).is_ok(), offset <= 3, "{offset}");
        assert_eq!(value_poke(at, &short, 4, 7, 8).is_ok(), offset <= 2, "{offset}");
        assert_eq!(value_poke(at, &long, 8, 7, 8).is_ok(), offset == 6, "{offset}");
    }
    let error = branch_poke(0x1005, &nop, 0x2000, false, true).expect_err("in two words");
    assert!(error.to_string().ends_with("an instruction inside one aligned word of eight bytes"));
}

/// Instructions that look like ours.
#[test]
fn others_are_not_ours() {
    let others: [(&str, &[u8]); 22] = [
        ("nothing", &[]),
        ("a trap and the rest of a nop", &[0xcc, 0x1f, 0x44, 0, 0]),
        ("a trap and the rest of a jump", &[0xcc, 5, 0, 0, 0]),
        ("a trap and the rest of a move", &[0xcc, 5, 0, 0, 0, 0]),
        ("a move cut off", &[0xb8, 1, 2, 3]),
        ("a move with REX cut off", &[0x41, 0xb9, 1, 2, 3]),
        ("a movabs cut off", &[0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7]),
        ("a jump cut off", &[0xe9, 1, 2, 3]),
        ("a nop cut off", &[0x0f, 0x1f, 0x44, 0]),
        ("REX alone", &[0x48]),
        ("a short jump", &[0xeb, 3, 0x90, 0x90, 0x90]),
        ("a call", &[0xe8, 0, 0, 0, 0]),
        ("a jump with REX", &[0x48, 0xe9, 0, 0, 0, 0]),
        ("mov r8, imm8", &[0xb7, 1, 0, 0, 0]),
        ("mov r/m32, imm32", &[0xc7, 0xc0, 1, 0, 0, 0]),
        ("mov r16, imm16", &[0x66, 0xb8, 1, 0, 0, 0]),
        ("a nop of six", &[0x66, 0x0f, 0x1f, 0x44, 0, 0]),
        ("another nop of five", &[0x0f, 0x1f, 0x44, 0, 8]),
        ("a nop of four", &[0x0f, 0x1f, 0x40, 0, 0x90]),
        ("two REX", &[0x41, 0x41, 0xb8, 1, 0, 0, 0]),
        ("another REX", &[0x40, 0xb8, 1, 0, 0, 0]),
        ("another opcode with REX", &[0x49, 0xc0, 1, 0, 0, 0, 0, 0, 0, 0]),
    ];
    for (what, code) in others {
        assert_eq!(decode(code), None, "{what}");
        for width in [1, 2, 4, 8] {
            let error = value_poke(0x40, code, width, 1, 2).expect_err(what);
            assert_eq!((error.address, error.found.as_slice()), (0x40, code), "{what}");
        }
        for old in [false, true] {
            let error = branch_poke(0x40, code, 0x45, old, !old).expect_err(what);
            assert!(code.starts_with(&error.found), "{what}");
        }
    }
}

/// What a record promises and the code does not hold is refused, in words that name both.
#[test]
fn mismatches_name_both() {
    let code = assemble(9, 7, 4);
    let error = value_poke(0x4000, &code, 4, 8, 9).expect_err("it holds 7");
    let text = error.to_string();
    assert!(text.contains("0x4000 is 41 b9 07 00 00 00"), "{text}");
    assert!(text.ends_with("mov with the 4-byte immediate 0x8"), "{text}");
    assert!(value_poke(0, &code, 8, 7, 9).is_err(), "four bytes are not eight");
    assert!(value_poke(0, &assemble(9, 7, 8), 4, 7, 9).is_err(), "nor eight four");
    assert!(value_poke(0, &NOP, 4, 0, 1).is_err());
    // Bytes behind the instruction are not its.
    let longer = [code.as_slice(), &[0xcc; 4]].concat();
    assert_eq!(value_poke(0, &longer, 4, 8, 9).expect_err("it holds 7").found, code);

    let jump = encode_branch(0x4000, 0x5000, true).expect("within reach");
    let elsewhere = encode_branch(0x4000, 0x5001, true).expect("within reach");
    for (code, old) in [(jump, false), (NOP, true), (elsewhere, true)] {
        let error = branch_poke(0x4000, &code, 0x5000, old, !old).expect_err("another state");
        assert_eq!(error.found, code);
        let expected = if old { "jmp 0x5000" } else { "the 5-byte nop" };
        assert_eq!(error.expected, expected);
    }
}

/// A poke without what nobody reads: where the field begins at the second byte, that byte of the head
/// is the field's.
fn known(mut poke: Poke) -> Poke {
    if poke.field == 1 {
        poke.head[1] = 0;
    }
    poke
}

fn any_move() -> impl Strategy<Value = (u8, u8, u64)> {
    let register = (0_u8..16).prop_filter("rsp is never a value's", |register| *register != RSP);
    (register, prop_oneof![Just(4_u8), Just(8)], any::<u64>()).prop_map(
        |(register, width, bits)| {
            (register, width, if width == 4 { bits & u64::from(u32::MAX) } else { bits })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4096,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// What is encoded is decoded, and the handler does what the processor would have done.
    #[test]
    fn a_move_comes_back((register, width, bits) in any_move(), new: u64, address: u32) {
        let new = if width == 4 { new & u64::from(u32::MAX) } else { new };
        let code = assemble(register, bits, width);
        let field = code.len() as u8 - width;
        let address = aligned(address as usize, field, width);
        prop_assert_eq!(decode(&code), Some(Instruction::Move { register, bits, field, width }));
        let poke = value_poke(address, &code, width, bits, new).expect("it is ours");
        let after = poked(&poke, &code, new);
        prop_assert_eq!(
            decode(&after),
            Some(Instruction::Move { register, bits: new, field, width })
        );
        prop_assert_eq!(effect(&poke, bits), judged_effect(&judge(&code, address)));
        prop_assert_eq!(effect(&poke, new), judged_effect(&judge(&after, address)));
        let back = value_poke(address, &after, width, new, bits).expect("it is ours");
        prop_assert_eq!(known(back), known(poke.reversed()));
        prop_assert_eq!(poke.reversed().reversed(), poke);
        prop_assert_eq!(poke.is_idle(), bits == new);
    }

    #[test]
    fn a_branch_comes_back(address: u32, displacement: i32, old: bool, new: bool) {
        let address = aligned(address as usize | 1 << 40, 0, BRANCH_LENGTH as u8);
        let target = (address + BRANCH_LENGTH).wrapping_add_signed(displacement as isize);
        let before = encode_branch(address, target, old).expect("within reach");
        let after = encode_branch(address, target, new).expect("within reach");
        let expected = if old { Instruction::Jump { displacement } } else { Instruction::Nop };
        prop_assert_eq!(decode(&before), Some(expected));
        let poke = branch_poke(address, &before, target, old, new).expect("it is ours");
        prop_assert_eq!(poked(&poke, &before, poke.new), after);
        prop_assert_eq!(poke.new_first_byte(), after[0]);
        prop_assert_eq!(effect(&poke, poke.old), judged_effect(&judge(&before, address)));
        prop_assert_eq!(effect(&poke, poke.new), judged_effect(&judge(&after, address)));
        let back = branch_poke(address, &after, target, new, old).expect("it is ours");
        prop_assert_eq!(back, poke.reversed());
        prop_assert_eq!(poke.reversed().reversed(), poke);
        prop_assert_eq!(poke.is_idle(), old == new);
    }

    /// Whatever stands there: what we take for ours is what the disassembler sees, byte for byte.
    #[test]
    fn nothing_else_is_taken_for_ours(
        first in prop_oneof![Just(0x0f_u8), 0x40_u8..0x50, 0xb0_u8..0xc0, Just(0xe9_u8), Just(0xcc_u8), any::<u8>()],
        second in prop_oneof![Just(0x1f_u8), 0xb0_u8..0xc0, any::<u8>()],
        rest in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let code = [&[first, second], rest.as_slice()].concat();
        if let Some(instruction) = decode(&code) {
            let judged = judge(&code, 0x1000);
            prop_assert_eq!(judged.len(), instruction.length(), "{}", judged);
            let expected = match instruction {
                Instruction::Move { register, bits, .. } => {
                    Effect { register: Some((register, bits)), next: 0x1000 + judged.len() }
                }
                Instruction::Nop => Effect { register: None, next: 0x1005 },
                Instruction::Jump { displacement } => {
                    let next = 0x1005_usize.wrapping_add_signed(displacement as isize);
                    Effect { register: None, next }
                }
            };
            prop_assert_eq!(judged_effect(&judged), expected, "{}", judged);
        }
    }

    /// The handler never panics, whatever a table holds while it is rewritten.
    #[test]
    fn the_handler_survives_any_poke(
        address: usize, old: u64, new: u64, field: u8, width: u8, head: [u8; 2]
    ) {
        let poke = Poke { address, old, new, field, width, head };
        let Effect { register, .. } = effect(&poke, new);
        prop_assert!(register.is_none_or(|(number, bits)| number < 16 && bits == new));
    }
}
