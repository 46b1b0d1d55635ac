//! 10,000 updates of sites on twelve pages, by each writer, over text in one piece and in several. What
//! would go wrong: each update leaves the text in more pieces than it found (the kernel ends that, and
//! every later `mmap`, at `vm.max_map_count`), or pages stay writable.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use immediate::{Batch, Config, Immediate, Writer, immediate, immediate_read};
use immediate_tests::torture::{Random, be_nice};
use immediate_tests::{child, has_sites, maps};

immediate_tests::scenarios!(in_one_piece, in_pieces, in_pieces_later);

const WRITER: &str = "IMMEDIATE_TEST_WRITER";
const UPDATES: u64 = 10_000;

#[immediate]
static FIRST: Immediate<u32> = Immediate::new(0);
#[immediate]
static SECOND: Immediate<u64> = Immediate::new(0);
#[immediate]
static THIRD: Immediate<u8> = Immediate::new(0);

/// A function on a page of its own.
#[inline(never)]
fn read<const PLACE: u64>() -> [u64; 3] {
    cfg_select! {
        // SAFETY: jumps over nothing.
        target_arch = "x86_64" => unsafe {
            std::arch::asm!("jmp 2f", ".p2align 12", "2:", options(nomem, nostack, preserves_flags));
        },
        _ => {}
    }
    let first = u64::from(immediate_read!(FIRST));
    let (second, third) = (immediate_read!(SECOND), u64::from(immediate_read!(THIRD)));
    // Functions that differ in more than their name: LLVM merges identical ones, and their sites.
    [first, second, third].map(|value| std::hint::black_box(value ^ PLACE) ^ PLACE)
}

macro_rules! places {
    ($($place:literal)*) => { [$(read::<$place> as fn() -> [u64; 3]),*] };
}

static PLACES: [fn() -> [u64; 3]; 12] = places!(0 1 2 3 4 5 6 7 8 9 10 11);

/// Makes a part of the text a mapping of its own: one that children of `fork` do not get.
fn divide() {
    let (first, last) = (PLACES[3] as usize, PLACES[8] as usize);
    let (start, end) = (first.min(last) & !4095, first.max(last) & !4095);
    // SAFETY: takes numbers; nothing of this process changes, and it does not fork.
    let done =
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTFORK) };
    assert_eq!(done, 0, "madvise: {}", std::io::Error::last_os_error());
}

/// The lines of the program's own text, and of all.
fn lines() -> (Vec<String>, usize) {
    let text = maps::text_of(PLACES[0] as usize);
    let text =
        text.iter().map(|part| format!("{:x}-{:x} {}", part.start, part.end, part.protection));
    (text.collect(), maps::all().len())
}

fn update(random: &mut Random, values: &mut [u64; 3], number: u64) {
    let result = match random.below(4) {
        0 => {
            values[0] = number;
            FIRST.set(number as u32)
        }
        1 => {
            values[1] = number;
            SECOND.set(number)
        }
        2 => {
            values[2] = number % 256;
            THIRD.set(number as u8)
        }
        _ => {
            *values = [number, number, number % 256];
            Batch::new()
                .set(&FIRST, number as u32)
                .set(&SECOND, number)
                .set(&THIRD, number as u8)
                .apply()
        }
    };
    result.expect("it can be set");
    assert_eq!(PLACES[random.below(PLACES.len())](), *values);
}

fn run(pieces: usize, later: bool) {
    let asked = std::env::var(WRITER).expect("a writer");
    let writer = Writer::ALL.iter().copied().find(|one| one.name() == asked);
    immediate::configure(Config { writer, ..Config::default() }).expect("nothing has been set");
    if pieces > 1 && !later {
        divide();
    }
    let (stop, goes) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, SeqCst);
            }
        }
        let _stop = Stop(&stop);
        scope.spawn(|| {
            be_nice();
            let mut random = Random::new(7);
            while !stop.load(SeqCst) {
                std::hint::black_box(PLACES[random.below(PLACES.len())]());
                goes.store(true, SeqCst);
            }
        });
        // A thread that begins maps its alternate stack.
        while !goes.load(SeqCst) {
            std::thread::yield_now();
        }
        let (mut random, mut values) = (Random::new(1), [0; 3]);
        let mut before = lines();
        for number in 1..=UPDATES {
            update(&mut random, &mut values, number);
            if later && number == UPDATES / 2 {
                divide();
                before = lines();
            }
        }
        let after = lines();
        assert_eq!(before, after);
        assert_eq!(after.0.len(), pieces, "{after:?}");
        PLACES.iter().for_each(|place| assert_eq!(place(), values));
    });
    if has_sites() {
        let last = immediate::status().last.expect("code was changed");
        assert!(writer.is_none_or(|asked| asked == last.writer));
        let pages = maps::sites_of(FIRST.name()).iter().map(|site| site >> 12).collect::<Vec<_>>();
        assert!(pages.windows(2).all(|two| two[0] != two[1]) && pages.len() >= PLACES.len());
    }
}

fn in_one_piece() {
    run(1, false);
}

fn in_pieces() {
    run(3, false);
}

/// The program divides its text after the library has looked at it.
fn in_pieces_later() {
    run(3, true);
}

#[test]
fn there_are_as_many_mappings_as_before() {
    child::succeed("in_one_piece", &[(WRITER, "mprotect")]);
    child::succeed("in_pieces", &[(WRITER, "mprotect")]);
    child::succeed("in_pieces", &[(WRITER, "procmem")]);
    child::succeed("in_pieces_later", &[(WRITER, "any")]);
}
