//! The i386 encoders and the decoder, judged by a disassembler that is not ours: what x86-64 and i386
//! do not share is what a prefix of the one means on the other.

use iced_x86::{Code, Decoder, DecoderOptions};
use immediate_arch::isa::Effect;
use immediate_arch::isa::i386::{
    BRANCH_LENGTH, Instruction, LONGEST, MAX_VALUE, NOP, branch_poke, decode, effect,
    encode_branch, value_length, value_poke,
};

const BITS: [u64; 8] = [0, 1, 0x7f, 0x80, 0xcc, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

fn assemble(register: u8, bits: u64) -> [u8; 5] {
    let [a, b, c, d, ..] = bits.to_le_bytes();
    [0xb8 | register, a, b, c, d]
}

#[test]
fn moves_into_every_register() {
    assert_eq!((MAX_VALUE, LONGEST), (4, 5));
    for register in 0..8 {
        for bits in BITS {
            let code = assemble(register, bits);
            let judged = Decoder::with_ip(32, &code, 0x1000, DecoderOptions::NONE).decode();
            assert_eq!((judged.code(), judged.len()), (Code::Mov_r32_imm32, LONGEST));
            assert_eq!(judged.op0_register().number(), usize::from(register));
            assert_eq!(u64::from(judged.immediate32()), bits);

            let expected = Instruction::Move { register, bits, field: 1, width: 4 };
            assert_eq!(decode(&code), Some(expected), "{code:02x?}");
            for width in [1, 2, 4] {
                assert_eq!(value_length(width), LONGEST);
                for new in BITS {
                    let poke = value_poke(0x1000, &code, width, bits, new).expect("it is ours");
                    assert_eq!((poke.field, poke.width, poke.old, poke.new), (1, 4, bits, new));
                    let expected = Effect { register: Some((register, new)), next: 0x1005 };
                    assert_eq!(effect(&poke, new), expected);
                }
            }
            assert!(value_poke(0x1000, &code, 4, bits ^ 1, 0).is_err(), "another value");
            assert!(value_poke(0x1000, &code, 8, bits, 0).is_err(), "no site has eight bytes");
        }
    }
}

#[test]
fn branches_to_both_sides() {
    for target in [0x1005, 0x2000, 0x10, 0x7fff_0000] {
        let code = encode_branch(0x1000, target, true).expect("in reach");
        let judged = Decoder::with_ip(32, &code, 0x1000, DecoderOptions::NONE).decode();
        assert_eq!((judged.code(), judged.len()), (Code::Jmp_rel32_32, BRANCH_LENGTH));
        assert_eq!(judged.near_branch32() as usize, target);
        let poke = branch_poke(0x1000, &NOP, target, false, true).expect("it is the nop");
        assert_eq!(effect(&poke, poke.new), Effect { register: None, next: target });
        assert_eq!(effect(&poke, poke.old), Effect { register: None, next: 0x1005 });
        assert!(branch_poke(0x1000, &code, target, false, true).is_err(), "not the nop");
    }
    let judged = Decoder::with_ip(32, &NOP, 0x1000, DecoderOptions::NONE).decode();
    assert_eq!((judged.code(), judged.len()), (Code::Nop_rm32, BRANCH_LENGTH));
}

/// What x86-64 has a prefix for is an instruction of its own here.
#[test]
fn a_prefix_of_x86_64_is_refused() {
    for prefix in [0x41, 0x48, 0x49] {
        let code = [prefix, 0xb8, 1, 0, 0, 0, 0, 0, 0, 0];
        let judged = Decoder::with_ip(32, &code, 0x1000, DecoderOptions::NONE).decode();
        assert_eq!(judged.len(), 1, "{judged}");
        assert_eq!(decode(&code), None);
    }
}
