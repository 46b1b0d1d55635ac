//! The PowerPC encoders and the decoder, judged by a disassembler that is not ours, in both byte orders;
//! and the steps that bring stored code to the caches.
//!
//! CASES 6: an immediate whose sign is extended where it must not be; a length taken for an end address.

// A list of one range is meant.
#![allow(clippy::single_range_in_vec_init)]

use capstone::arch::BuildsCapstone;
use capstone::arch::BuildsCapstoneEndian;
use capstone::arch::ppc::ArchMode;
use capstone::{Capstone, Endian};
use immediate_arch::isa::Effect;
use immediate_arch::isa::powerpc::{
    Instruction, LONGEST, Lines, MAX_VALUE, NOP, Step, TRAP, TRAP_WORD, branch_poke, coherence,
    decode, effect, encode_branch, encode_load, in_memory, value_poke, word_of,
};

/// The instruction as text, in each mode and byte order.
fn judge(word: u32, address: u64) -> Vec<String> {
    let modes = [
        (ArchMode::Mode32, Endian::Big),
        (ArchMode::Mode64, Endian::Big),
        (ArchMode::Mode64, Endian::Little),
    ];
    let text = modes.map(|(mode, order)| {
        let judge = Capstone::new().ppc().mode(mode).endian(order).build().expect("a mode");
        let bytes = if order == Endian::Big { word.to_be_bytes() } else { word.to_le_bytes() };
        let all = judge.disasm_all(&bytes, address).expect("it disassembles");
        let one = all.iter().next().expect("one instruction");
        format!("{} {}", one.mnemonic().unwrap_or(""), one.op_str().unwrap_or(""))
    });
    text.into()
}

/// What a thread finds in its register, as the C language would extend it.
const BITS: [u64; 9] = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xff80, 0xffff];

#[test]
fn loads_into_every_register() {
    assert_eq!((MAX_VALUE, LONGEST), (2, 4));
    for register in 0..32 {
        for bits in BITS {
            let word = encode_load(register, bits);
            let signed = bits as u16 as i16;
            for text in judge(word, 0x1000) {
                let number = text.rsplit(' ').next().expect("an operand");
                let (sign, digits) = number.strip_prefix('-').map_or((1, number), |n| (-1, n));
                let value = digits
                    .strip_prefix("0x")
                    .map_or_else(|| digits.parse(), |n| i32::from_str_radix(n, 16));
                assert!(
                    text.starts_with(&format!("li r{register}, "))
                        || text.starts_with(&format!("li {register}, ")),
                    "{text}"
                );
                assert_eq!(sign * value.expect("a number"), i32::from(signed), "{text}");
            }
            let expected = Instruction::Load { register, immediate: signed };
            assert_eq!(decode(word), Some(expected));
            for new in BITS {
                let code = word.to_ne_bytes();
                let poke = value_poke(0x1000, &code, 2, bits, new).expect("it is ours");
                assert_eq!((poke.field, poke.width), (0, 4));
                assert_eq!(word_of(poke.new), encode_load(register, new));
                let extended = i64::from(new as u16 as i16).cast_unsigned();
                let expected = Effect { register: Some((register, extended)), next: 0x1004 };
                assert_eq!(effect(&poke, poke.new), expected);
            }
            assert!(value_poke(0x1000, &word.to_ne_bytes(), 2, bits ^ 1, 0).is_err());
            assert!(value_poke(0x1000, &word.to_ne_bytes(), 4, bits, 0).is_err(), "too wide");
        }
    }
}

#[test]
fn branches_as_far_as_they_reach() {
    const HERE: usize = 0x1000_0000;
    for distance in [4_isize, -4, 0x7ffc, -0x8000, 0x01ff_fffc, -0x0200_0000] {
        let target = HERE.wrapping_add_signed(distance);
        let word = encode_branch(HERE, target, true).expect("in reach");
        for text in judge(word, HERE as u64) {
            assert_eq!(text, format!("b {target:#x}"));
        }
        assert_eq!(decode(word), Some(Instruction::Jump { distance: distance as i32 }));
        let poke = branch_poke(HERE, &NOP.to_ne_bytes(), target, false, true).expect("the nop");
        assert_eq!(effect(&poke, poke.new), Effect { register: None, next: target });
        assert_eq!(effect(&poke, poke.old), Effect { register: None, next: HERE + 4 });
        assert_eq!(poke.reversed().new, poke.old);
    }
    for distance in [0x0200_0000_isize, -0x0200_0004, 2] {
        let target = HERE.wrapping_add_signed(distance);
        assert_eq!(encode_branch(HERE, target, true), None);
        let error = branch_poke(HERE, &NOP.to_ne_bytes(), target, false, true).expect_err("far");
        assert!(error.to_string().contains("cannot reach"), "{error}");
    }
}

#[test]
fn the_nop_and_the_trap() {
    assert!(judge(NOP, 0).iter().all(|text| text.trim() == "nop"), "{:?}", judge(NOP, 0));
    assert!(judge(TRAP_WORD, 0).iter().all(|text| text.starts_with("trap")), "a trap");
    assert_eq!(TRAP, TRAP_WORD.to_ne_bytes());
    assert_eq!((decode(NOP), decode(TRAP_WORD)), (Some(Instruction::Nop), None));
    assert_eq!(word_of(in_memory(TRAP_WORD)), TRAP_WORD);
    // `addi 3, 3, 1`, `addis 3, 0, 1`, `bl`, `ba`, `ori 0, 0, 1`.
    for word in [0x3863_0001, 0x3c60_0001, 0x4800_0005, 0x4800_0006, 0x6000_0001] {
        assert_eq!(decode(word), None, "{word:#x}");
    }
}

/// The range ends before its end, which is an address. With a length there, as in 2007, no line is
/// touched or too many are.
#[test]
fn coherence_goes_over_every_line_once_and_in_order() {
    use Step::{Forget, InvalidateLine, StoreLine, Sync};
    let steps = |ranges: &[std::ops::Range<usize>], data, instruction| {
        let mut steps = Vec::new();
        coherence(ranges.iter().cloned(), Lines { data, instruction }, |step| steps.push(step));
        steps
    };
    assert_eq!(
        steps(&[0x101c..0x1024], 32, 32),
        [
            StoreLine(0x1000),
            StoreLine(0x1020),
            Sync,
            InvalidateLine(0x1000),
            InvalidateLine(0x1020),
            Sync,
            Forget,
        ],
        "a range across two lines"
    );
    assert_eq!(
        steps(&[0x101c..0x1020, 0x2000..0x2004], 32, 128),
        [
            StoreLine(0x1000),
            StoreLine(0x2000),
            Sync,
            InvalidateLine(0x1000),
            InvalidateLine(0x2000),
            Sync,
            Forget,
        ],
        "the end is exclusive: the line that begins there is left alone"
    );
    assert_eq!(steps(&[0x10fc..0x1104], 128, 128)[0], StoreLine(0x1080));
    assert_eq!(steps(&[0x10fc..0x1104], 128, 128)[1], StoreLine(0x1100));
}
