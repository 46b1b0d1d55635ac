//! CASE 21 (LKML, October 2019: a jump label assumed a two-byte jump where five bytes stood, and
//! patched half of the next instruction).
//!
//! What would go wrong: the recorded length is not that of the bytes, because an assembler shortened
//! the jump to a near arm; or a site whose bytes are not what the record says is overwritten.

#[path = "../fixtures/support/mod.rs"]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use support::{Build, Image, Linker, fixture, has_sites};

#[test]
fn a_damaged_site_is_refused_and_left_alone() {
    if !has_sites() {
        return;
    }
    for linker in [Linker::Default, Linker::Bfd].into_iter().filter(|linker| linker.is_installed())
    {
        let case = format!("corrupted/{linker:?}");
        let program = Build::new(&case, &fixture("corrupted.rs"))
            .linker(linker)
            .flags("-Copt-level=3")
            .build()
            .expect("builds");
        let image = Image::read(&program);
        support::check(&image);
        let output = support::run(&mut Command::new(&program)).expect("undamaged, it runs");
        assert_eq!(output, "all set\n");

        // A true default is built as the jump, five bytes long wherever its arm is.
        for (name, is_far) in [("tiny_arm", false), ("far_arm", true)] {
            let [record] = image.records_in(name)[..] else { panic!("{name} has one site") };
            let code = image.code(record.address);
            assert_eq!(code[0], 0xe9, "{name} begins with jmp rel32");
            let distance = i32::from_le_bytes(code[1..5].try_into().unwrap());
            println!("{name}: {distance} bytes to the arm");
            assert_eq!(record.address.wrapping_add_signed(i64::from(distance) + 5), record.target);
            assert_eq!(distance.unsigned_abs() > 127, is_far, "{name}");
        }

        // Each damage is one that decodes as an instruction, so that only the record can tell.
        let damages: [(&str, usize, &[u8], &str); 8] = [
            ("read_limit", 0, &[0x3d], "cmp eax, imm32 for mov eax, imm32"),
            ("read_limit", 1, &[0x02], "another immediate"),
            ("read_big", 9, &[0x00], "another highest byte of eight"),
            ("test_off", 2, &[0x45], "another nop"),
            ("test_off", 0, &[0x0f, 0x1f, 0x40, 0x00, 0x90], "two nops of five bytes together"),
            ("test_off", 0, &[0xcc], "a breakpoint"),
            ("tiny_arm", 2, &[0x01], "a jump to somewhere else"),
            ("far_arm", 0, &[0xe8], "a call for the jump"),
        ];
        for (name, offset, bytes, what) in damages {
            let [record] = image.records_in(name)[..] else { panic!("{name} has one site") };
            let place = image.offset(record.address);
            let mut damaged = image.bytes.clone();
            damaged[place + offset..place + offset + bytes.len()].copy_from_slice(bytes);
            assert!(damaged != image.bytes, "{what} is a damage");
            let path = program.with_extension("damaged");
            // A new file each time: the old one may still be running somewhere.
            let _ = fs::remove_file(&path);
            fs::write(&path, &damaged).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            let output = support::run(Command::new(&path).arg(name)).expect(what);
            println!("{what}: {}", output.trim());
            let length = if name == "read_big" { 10 } else { 5 };
            let left = format!("{:02x?}", &damaged[place..place + length]);
            let left = left.trim_end_matches(']');
            assert!(output.starts_with(&format!("refused {left}")), "{what}: {output} {left}");
        }
    }
}
