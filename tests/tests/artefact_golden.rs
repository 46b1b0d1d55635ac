//! The instructions of the hot read, in the file as the linker left it: DESIGN section 4.
//!
//! What would go wrong: a comparison or a load left in the path that a disabled test should cost one
//! nop; an initial value that is patched in at start-up instead of standing in the file; an arm that
//! is laid out in the way.

#[path = "../fixtures/support/mod.rs"]
mod support;

use std::sync::OnceLock;

use iced_x86::{Code, FlowControl, Instruction, Mnemonic, OpKind};
use support::{Build, Image, NOP, Record, fixture, has_sites, is_nop};

fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let build = Build::new("golden", &fixture("golden.rs")).flags("-Copt-level=3");
        let image = Image::read(&build.build().expect("builds"));
        support::check(&image);
        image
    })
}

/// Instructions that do something: without padding, and with the site named.
fn essence(name: &str) -> Vec<String> {
    let sites: Vec<u64> = image().records_in(name).iter().map(|record| record.address).collect();
    let all = image().function(name);
    let all = all.iter().filter(|one| !is_nop(one) || sites.contains(&one.ip()));
    all.map(
        |one| if sites.contains(&one.ip()) { format!("{one} <- site") } else { one.to_string() },
    )
    .collect()
}

/// From the beginning of the function to the first return: the hot path.
fn hot(name: &str) -> Vec<Instruction> {
    let all = image().function(name);
    let end = all.iter().position(|one| one.flow_control() == FlowControl::Return);
    all[..=end.unwrap_or_else(|| panic!("{name} returns"))].to_vec()
}

fn site(name: &str) -> Record {
    let [record] = image().records_in(name)[..] else { panic!("{name} has one site") };
    record
}

#[test]
fn a_value_is_one_move() {
    if !has_sites() {
        return;
    }
    let expected: [(&str, &[&str]); 10] = [
        ("read_u8", &["mov eax,0A5h <- site", "ret"]),
        ("read_i8", &["mov eax,0FDh <- site", "ret"]),
        ("read_u16", &["mov eax,8001h <- site", "ret"]),
        ("read_u32", &["mov eax,0DEADBEEFh <- site", "ret"]),
        ("read_u64", &["mov rax,123456789ABCDEFh <- site", "ret"]),
        ("read_f32", &["mov eax,3FC00000h <- site", "movd xmm0,eax", "ret"]),
        ("read_f64", &["mov rax,0C004000000000000h <- site", "movq xmm0,rax", "ret"]),
        ("read_char", &["mov eax,1F980h <- site", "ret"]),
        ("read_true", &["mov eax,1 <- site", "ret"]),
        ("read_false", &["mov eax,0 <- site", "ret"]),
    ];
    for (name, lines) in expected {
        let mut found = essence(name);
        // LLVM cannot know that the bits of a `bool` are 0 or 1, and may say so itself.
        found.retain(|line| line != "and al,1");
        assert_eq!(found, lines, "{name}");
        let record = site(name);
        let instruction = image().function(name).into_iter().find(|one| one.ip() == record.address);
        let code = instruction.expect("at the record").code();
        let is_wide = name.ends_with("64");
        assert_eq!(code, if is_wide { Code::Mov_r64_imm64 } else { Code::Mov_r32_imm32 }, "{name}");
    }
}

#[test]
fn a_test_that_is_off_costs_one_nop() {
    if !has_sites() {
        return;
    }
    for shape in ["straight", "loop"] {
        let without: Vec<String> = hot(&format!("{shape}_without"))
            .iter()
            .filter(|one| !is_nop(one))
            .map(template)
            .collect();
        for kind in ["flag", "comparison", "test", "likely"] {
            if (shape, kind) == ("loop", "likely") {
                continue;
            }
            let name = format!("{shape}_with_{kind}");
            let record = site(&name);
            assert_eq!(image().code(record.address)[..5], NOP, "{name}");
            let path = hot(&name);
            let place = path.iter().position(|one| one.ip() == record.address);
            let place = place.unwrap_or_else(|| panic!("{name}: the site is on the hot path"));
            // Alignment before the site: nops, and not more than one instruction of them.
            let padding = path[..place].iter().rev().take_while(|one| is_nop(one)).count();
            assert!(padding <= 1, "{name}: {padding} nops before the site");
            for one in &path {
                let is_load = one.op_kinds().any(|kind| kind == OpKind::Memory)
                    && !is_nop(one)
                    && one.mnemonic() != Mnemonic::Lea;
                assert!(!is_load, "{name}: {one}");
            }
            let compares = |path: &[Instruction]| {
                let is = |one: &&Instruction| {
                    matches!(
                        one.mnemonic(),
                        Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Bt | Mnemonic::Ucomisd
                    )
                };
                path.iter().filter(is).count()
            };
            let plain = hot(&format!("{shape}_without"));
            assert_eq!(compares(&path), compares(&plain), "{name}: a comparison is left");
            if shape == "straight" {
                let with: Vec<String> =
                    path.iter().filter(|one| !is_nop(one)).map(template).collect();
                assert_eq!(with, without, "{name}: nothing but the nop is added");
            } else {
                // The loop proper: what stands between the backward branch and its target.
                assert_eq!(body(&path), body(&plain), "{name}: the loop has the same instructions");
            }
        }
    }
}

/// An instruction without the registers that the compiler chose.
fn template(one: &Instruction) -> String {
    format!("{:?}", one.code())
}

/// The instructions of the loop, in any order: which comes first in memory is the compiler's choice.
fn body(path: &[Instruction]) -> Vec<String> {
    let back = path.iter().find(|one| {
        one.flow_control() == FlowControl::ConditionalBranch && one.near_branch64() <= one.ip()
    });
    let back = back.expect("a loop");
    let inside = path.iter().filter(|one| (back.near_branch64()..=back.ip()).contains(&one.ip()));
    let mut all: Vec<String> =
        inside.filter(|one| !is_nop(one)).map(|one| format!("{:?}", one.mnemonic())).collect();
    all.sort();
    all
}

#[test]
fn the_expected_arm_comes_next() {
    if !has_sites() {
        return;
    }
    for (name, next, is_built_taken) in [
        ("unlikely_off", "other", false),
        ("unlikely_on", "other", true),
        ("likely_off", "arm", true),
        ("likely_on", "arm", false),
        ("likely_level", "arm", true),
    ] {
        let record = site(name);
        let is_jump = image().code(record.address)[0] == 0xe9;
        assert_eq!(is_jump, is_built_taken, "{name}");
        let behind = arm_at(name, record.address + 5);
        assert_eq!(behind, next, "{name}: what stands behind the site");
        let far = arm_at(name, record.target);
        assert_ne!(far, next, "{name}: where the branch leads");
    }
}

/// The function that is called, or jumped to, next from `address` on.
fn arm_at(name: &str, address: u64) -> &'static str {
    let all = image().function(name);
    let calls = all.iter().filter(|one| one.ip() >= address).find_map(|one| {
        let target = one.near_branch_target();
        ["arm", "other"].into_iter().find(|arm| image().functions[*arm].0 == target)
    });
    calls.unwrap_or_else(|| panic!("{name} calls an arm behind {address:#x}"))
}

/// CASES 20: a read that the compiler may take for a constant is made once.
#[test]
fn two_reads_are_two_sites() {
    if !has_sites() {
        return;
    }
    assert_eq!(image().records_in("read_twice").len(), 2);
    let moves = essence("read_twice").iter().filter(|line| line.ends_with("<- site")).count();
    assert_eq!(moves, 2);
}

/// Guarantee 3: without a fence for the compiler in the arm, the load is made before the loop.
#[test]
fn what_the_arm_reads_is_read_in_the_arm() {
    if !has_sites() {
        return;
    }
    let all = image().function("loop_with_published");
    let record = site("loop_with_published");
    let loads: Vec<&Instruction> =
        all.iter().filter(|one| one.is_ip_rel_memory_operand() && !is_nop(one)).collect();
    let [load] = loads[..] else { panic!("one load of the static: {loads:?}") };
    assert!(load.ip() > record.address, "{load} stands before the site");
}

#[test]
fn comparisons_stand_decided_in_the_file() {
    if !has_sites() {
        return;
    }
    for (name, outcome) in [
        ("is_level_1", true),
        ("is_level_not_1", false),
        ("is_depth_negative", true),
        ("is_depth_positive", false),
        ("is_ratio_small", true),
        ("is_ratio_large", false),
    ] {
        let record = site(name);
        assert_eq!((record.table, record.kind), ("comparisons", 1), "{name}");
        let code = &image().code(record.address)[..5];
        if outcome {
            assert_eq!(code[0], 0xe9, "{name} holds the jump");
        } else {
            assert_eq!(code, NOP, "{name} holds the nop");
        }
        assert!(
            image().function(name).iter().all(|one| one.mnemonic() != Mnemonic::Cmp),
            "{name} compares"
        );
    }
}
