//! Files of which bytes were changed: each gives records or one line, never a panic.
//!
//! The file is this test program, which has sites of its own.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use immediate::{Immediate, immediate, immediate_if, immediate_read};
use object::build::elf::Builder;
use object::{Object, ObjectSection};

use super::image::Image;
use super::source::Source;
use super::tables::Tables;
use super::{check, code, form};

#[immediate(name = "broken.SWITCH")]
static SWITCH: Immediate<bool> = Immediate::new(false);
#[immediate(name = "broken.LEVEL")]
static LEVEL: Immediate<u32> = Immediate::new(5);

fn sites() -> u32 {
    if immediate_if!(SWITCH) {
        return 0;
    }
    if immediate_if!(LEVEL >= 9) || immediate_if!(LEVEL, |level| level % 7 == 1) {
        return 1;
    }
    immediate_read!(LEVEL)
}

/// Numbers that look random and are the same in each run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

fn own_path() -> PathBuf {
    std::env::current_exe().expect("the path of this program")
}

/// This program without its names and debug information, so that it is looked at quickly.
fn stripped() -> Vec<u8> {
    let bytes = fs::read(own_path()).expect("this program");
    let mut builder = Builder::read(&*bytes).expect("an ELF file");
    for section in builder.sections.iter_mut() {
        let name = section.name.to_vec();
        section.delete =
            name.starts_with(b".debug") || [&b".symtab"[..], b".strtab"].contains(&&*name);
    }
    builder.symbols.iter_mut().for_each(|symbol| symbol.delete = true);
    let mut written = Vec::new();
    builder.write(&mut written).expect("an ELF file");
    written
}

/// Everything that `inspect` does with the bytes; says whether it came to the sites.
fn look(bytes: &[u8], verifies: bool) -> bool {
    let image = match Image::parse(bytes) {
        Ok(image) => image,
        Err(why) => {
            assert!(!why.is_empty() && !why.contains('\n'), "{why:?}");
            return false;
        }
    };
    let tables = match Tables::read(&image) {
        Ok(tables) => tables,
        Err(why) => {
            assert!(!why.is_empty() && !why.contains('\n'), "{why:?}");
            return false;
        }
    };
    for site in &tables.sites {
        form(&image, site);
        let _ = code::show(&image, site.address);
    }
    if verifies {
        for fault in check::faults(&image, &tables) {
            assert!(!fault.contains('\n'), "{fault:?}");
        }
    }
    true
}

/// Where the records, the headers and the words that the dynamic linker changes lie in the file.
fn interesting(bytes: &[u8]) -> Vec<(usize, usize)> {
    let file = object::File::parse(bytes).expect("not broken yet");
    let mut ranges = vec![(0, 64), (64, 600)];
    for section in file.sections() {
        let name = section.name().unwrap_or("");
        let is_wanted = name.starts_with("immediate_")
            || [".rela.dyn", ".dynsym", ".dynamic", ".got"].contains(&name);
        if let (true, Some((offset, size @ 1..))) = (is_wanted, section.file_range()) {
            ranges.push((offset as usize, size as usize));
        }
    }
    // Section headers are at the end.
    ranges.push((bytes.len() - 2048, 2048));
    ranges
}

#[test]
fn changed_bytes_give_one_line() {
    assert_eq!(sites(), 5);
    let good = stripped();
    if immediate::status().target == "plain" {
        println!("skipped: sites, of which this build has none");
        assert!(!look(&good, true));
        return;
    }
    assert!(look(&good, true));
    let image = Image::parse(&good).expect("not broken yet");
    let tables = Tables::read(&image).expect("it has tables");
    let names: Vec<&str> = tables.variables.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["broken.LEVEL", "broken.SWITCH"], "also where symbols are stripped");
    assert_eq!(check::faults(&image, &tables), [""; 0]);
    let ranges = interesting(&good);
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut whole, mut refused) = (0, 0);
    for round in 0..200 {
        let mut bytes = good.clone();
        for _ in 0..=numbers.below(4) {
            let (start, length) = ranges[numbers.below(ranges.len())];
            let place = start + numbers.below(length);
            bytes[place] = match numbers.below(3) {
                0 => 0xff,
                1 => bytes[place] ^ (1 << numbers.below(8)),
                _ => numbers.below(256) as u8,
            };
        }
        *if look(&bytes, round % 40 == 0) { &mut whole } else { &mut refused } += 1;
    }
    println!("{whole} files were shown, {refused} refused");
    assert!(whole > 10 && refused > 10, "both are tried: {whole} {refused}");
}

#[test]
fn files_that_end_early_give_one_line() {
    let good = stripped();
    let mut numbers = Numbers(7);
    for length in (0..200).chain((0..20).map(|_| numbers.below(good.len()))) {
        assert!(!look(&good[..length], false), "{length} bytes");
    }
}

#[test]
fn changed_debug_information_is_no_harm() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("program");
    fs::copy(own_path(), &path).expect("a copy");
    let mut bytes = Vec::new();
    File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)).expect("the copy");
    let ranges: Vec<(u64, u64)> = object::File::parse(&*bytes)
        .expect("an ELF file")
        .sections()
        .filter(|section| section.name().is_ok_and(|name| name.starts_with(".debug")))
        .filter_map(|section| section.file_range())
        .filter(|(_, size)| *size > 0)
        .collect();
    if ranges.is_empty() {
        println!("skipped: this program was built without debug information");
        return;
    }
    let address = sites as *const () as usize;
    let copy = OpenOptions::new().write(true).open(&path).expect("the copy");
    let mut numbers = Numbers(99);
    for _ in 0..5 {
        for _ in 0..200 {
            let (start, size) = ranges[numbers.below(ranges.len())];
            let place = start + numbers.below(size as usize) as u64;
            copy.write_all_at(&[numbers.below(256) as u8], place).expect("the copy");
        }
        let source = Source::open(&path);
        for step in 0..20 {
            source.find((address & 0xf_ffff) as u64 + step * 16);
        }
    }
}
