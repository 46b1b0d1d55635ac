//! Guarantee 1, and the first half of 2: a read gives one value whole, and after a set has returned
//! never an earlier one.
//!
//! 60 threads read sites of every width while all variables change; each value differs from the one
//! before in every byte. What would go wrong: a value of which some bytes are old and some new, a
//! branch that runs half an instruction, a thread that sees new and then old.
//!
//! CASES 2 (seen in frida-gum, issue 1060).

use std::cell::Cell;

use immediate::{Batch, Immediate, immediate, immediate_if, immediate_read};
use immediate_tests::scatter::{
    gather32, gather64, is_one_of, scatter8, scatter16, scatter32, scatter64,
};
use immediate_tests::torture::{self, Bound, Window};

#[immediate]
static EIGHT: Immediate<u64> = Immediate::new(0);
#[immediate]
static FOUR: Immediate<u32> = Immediate::new(0);
#[immediate]
static TWO: Immediate<u16> = Immediate::new(0);
#[immediate]
static ONE: Immediate<u8> = Immediate::new(0);
#[immediate]
static FLOAT: Immediate<f64> = Immediate::new(0.0);
#[immediate]
static POINTER: Immediate<&'static u64> = Immediate::new(&ENTRIES[0]);
#[immediate]
static ODD: Immediate<bool> = Immediate::new(false);

/// What the pointer points to, one after another.
static ENTRIES: [u64; 64] = {
    let mut entries = [0; 64];
    let mut index = 0;
    while index < entries.len() {
        entries[index] = index as u64;
        index += 1;
    }
    entries
};

static WINDOW: Window = Window::new();

fn check(read: &str, value: u64, (from, to): (u64, u64), generation: Option<u64>) -> u64 {
    let Some(generation) = generation else { panic!("{read}: {value:#018x} is a mixture") };
    assert!(generation >= from, "{read}: {generation}, but {from} had been set");
    assert!(generation <= to, "{read}: {generation}, but only {to} had begun");
    generation
}

fn reader(_: usize) -> impl FnMut() {
    let last = Cell::new([0_u64; 3]);
    move || {
        let mut seen = last.get();
        let (value, from, to) = WINDOW.read(|| immediate_read!(EIGHT));
        let generation = check("u64", value, (from, to), gather64(value));
        assert!(generation >= seen[0], "u64: {generation} after {}", seen[0]);
        seen[0] = generation;

        let (value, from, to) = WINDOW.read(|| immediate_read!(FLOAT).to_bits());
        let generation = check("f64", value, (from, to), gather64(value));
        assert!(generation >= seen[1], "f64: {generation} after {}", seen[1]);
        seen[1] = generation;

        let (value, from, to) = WINDOW.read(|| immediate_read!(FOUR));
        let generation = check("u32", value.into(), (from, to), gather32(value));
        assert!(generation >= seen[2], "u32: {generation} after {}", seen[2]);
        seen[2] = generation;
        last.set(seen);

        let (value, from, to) = WINDOW.read(|| immediate_read!(TWO));
        assert!(is_one_of(from, to, |n| value == scatter16(n)), "u16: {value:#x} {from}..={to}");
        let (value, from, to) = WINDOW.read(|| immediate_read!(ONE));
        assert!(is_one_of(from, to, |n| value == scatter8(n)), "u8: {value:#x} {from}..={to}");
        let (value, from, to) = WINDOW.read(|| *immediate_read!(POINTER));
        assert!(is_one_of(from, to, |n| value == n % 64), "pointer: {value} {from}..={to}");
        let (value, from, to) = WINDOW.read(|| immediate_if!(ODD));
        assert!(is_one_of(from, to, |n| value == (n % 2 == 1)), "bool: {value} {from}..={to}");
        let (value, from, to) = WINDOW.read(|| immediate_if!(likely ODD));
        assert!(is_one_of(from, to, |n| value == (n % 2 == 1)), "bool: {value} {from}..={to}");
    }
}

#[test]
fn every_read_gives_one_value_whole_and_none_goes_back() {
    torture::run("no mixture", Bound::new(100_000, 60), 60, reader, |generation| {
        WINDOW.set(generation, || {
            Batch::new()
                .set(&EIGHT, scatter64(generation))
                .set(&FOUR, scatter32(generation))
                .set(&TWO, scatter16(generation))
                .set(&ONE, scatter8(generation))
                .set(&FLOAT, f64::from_bits(scatter64(generation)))
                .set(&POINTER, &ENTRIES[generation as usize % 64])
                .set(&ODD, generation % 2 == 1)
                .apply()
                .expect("every thread can trap");
        });
        assert_eq!(EIGHT.get(), scatter64(generation));
        assert_eq!(*POINTER.get(), generation % 64);
    });
    println!("{}", immediate::status());
}
