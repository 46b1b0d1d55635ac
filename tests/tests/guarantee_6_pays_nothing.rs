//! Guarantee 6: a program that never sets anything pays nothing: no thread, no signal handler, no
//! writable text, no page of text written.
//!
//! This program has sites for everything that a built file can hold: integers, `bool`, `char`,
//! floats and comparisons with constants; no pointers and no tests by closure, whose sites are
//! brought up to date when the module registers. What would go wrong: a start-up that patches, so
//! that each process holds its own copy of the text.

#![allow(unsafe_code)]

use std::num::NonZero;

use immediate::{Immediate, immediate, immediate_if, immediate_read};
use immediate_tests::{child, maps, signals};

#[immediate]
static BYTE: Immediate<u8> = Immediate::new(200);
#[immediate]
static SIGNED: Immediate<i16> = Immediate::new(-300);
#[immediate]
static WORD: Immediate<u32> = Immediate::new(3_000_000_000);
#[immediate]
static WIDE: Immediate<i64> = Immediate::new(-1_234_567_890_123);
#[immediate]
static SINGLE: Immediate<f32> = Immediate::new(-1.5);
#[immediate]
static DOUBLE: Immediate<f64> = Immediate::new(2.25e100);
#[immediate]
static LETTER: Immediate<char> = Immediate::new('ß');
#[immediate]
static OFF: Immediate<bool> = Immediate::new(false);
#[immediate]
static ON: Immediate<bool> = Immediate::new(true);
#[immediate]
static COUNT: Immediate<NonZero<u16>> = Immediate::new(NonZero::new(7).unwrap());

immediate_tests::scenarios!(reads_and_lists, sets);

#[inline(never)]
fn read_all() {
    assert_eq!(immediate_read!(BYTE), 200);
    assert_eq!(immediate_read!(SIGNED), -300);
    assert_eq!(immediate_read!(WORD), 3_000_000_000);
    assert_eq!(immediate_read!(WIDE), -1_234_567_890_123);
    assert_eq!(immediate_read!(SINGLE).to_bits(), (-1.5_f32).to_bits());
    assert_eq!(immediate_read!(DOUBLE).to_bits(), 2.25e100_f64.to_bits());
    assert_eq!(immediate_read!(LETTER), 'ß');
    assert_eq!(immediate_read!(COUNT).get(), 7);
    assert!(!immediate_if!(OFF) && !immediate_if!(likely OFF));
    assert!(immediate_if!(ON) && immediate_if!(likely ON) && immediate_if!(!OFF));
    assert!(immediate_if!(BYTE >= 200) && immediate_if!(BYTE == 200) && !immediate_if!(BYTE > 200));
    assert!(immediate_if!(SIGNED < 0) && immediate_if!(WIDE <= -1_234_567_890_123));
    assert!(immediate_if!(LETTER != 's') && immediate_if!(DOUBLE > 1.0));
}

/// KiB of the program's text that this process has written, and its protection.
fn text() -> (usize, Vec<String>) {
    let here = read_all as fn() as usize;
    let path = maps::text_of(here)[0].path.clone();
    let text: Vec<_> = maps::written()
        .into_iter()
        .filter(|mapping| {
            (mapping.start..mapping.end).contains(&here)
                || (mapping.path == path && mapping.protection.contains('x'))
        })
        .collect();
    (
        text.iter().map(|mapping| mapping.written).sum(),
        text.into_iter().map(|mapping| mapping.protection).collect(),
    )
}

fn assert_nothing_paid() {
    assert_eq!(maps::threads(), 1, "no thread");
    assert_eq!(signals::current(libc::SIGTRAP).sa_sigaction, libc::SIG_DFL, "no trap handler");
    for signal in 1..=libc::SIGRTMAX() {
        if signal != libc::SIGKILL && signal != libc::SIGSTOP && !(32..34).contains(&signal) {
            let handler = signals::current(signal).sa_sigaction;
            assert!(handler == libc::SIG_DFL || handler == libc::SIG_IGN, "signal {signal}");
        }
    }
    assert_eq!(text(), (0, vec!["r-xp".to_string()]), "no page of text written");
    let writable = maps::all().into_iter().find(|mapping| mapping.protection.starts_with("rwx"));
    assert_eq!(writable, None);
}

fn reads_and_lists() {
    assert_nothing_paid();
    read_all();
    assert_nothing_paid();
    // Looking changes nothing either.
    assert!(immediate::variables().count() >= 10);
    assert!(immediate::modules().count() <= 1);
    let sites = immediate::sites().count();
    println!("{sites} sites");
    assert_nothing_paid();
    // To ask how a set would be carried out tries a writer on a page of the library's own; nothing
    // else changes.
    println!("{}", immediate::status());
    let (written, protection) = text();
    assert!(written <= 64, "{written} KiB");
    assert_eq!(protection, ["r-xp"]);
    assert_eq!(maps::threads(), 1);
    assert_eq!(signals::current(libc::SIGTRAP).sa_sigaction, libc::SIG_DFL);
}

/// The check can fail: after a set a page of text is this process's own.
fn sets() {
    assert_eq!(text().0, 0);
    WORD.set(1).expect("one thread");
    assert_eq!(immediate_read!(WORD), 1);
    let (written, protection) = text();
    assert!((4..=64).contains(&written), "{written} KiB");
    assert_eq!(protection, ["r-xp"]);
    // One thread needs no handler, even when it sets.
    assert_eq!(signals::current(libc::SIGTRAP).sa_sigaction, libc::SIG_DFL);
}

#[test]
fn a_program_that_never_sets_pays_nothing() {
    child::succeed("reads_and_lists", &[]);
    if immediate_tests::has_sites() {
        child::succeed("sets", &[]);
    }
    // With the harness's thread, in a process that came up the ordinary way.
    assert_eq!(maps::threads(), 2);
    read_all();
    assert_eq!(signals::current(libc::SIGTRAP).sa_sigaction, libc::SIG_DFL);
    assert_eq!(text(), (0, vec!["r-xp".to_string()]));
}
