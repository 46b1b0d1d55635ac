//! The variables, the sites that read them, and how each value tells its generation.

use immediate::{Batch, Immediate, immediate, immediate_if, immediate_read};
use immediate_tests::scatter::{
    gather32, gather64, is_one_of, scatter8, scatter16, scatter32, scatter64,
};
use immediate_tests::torture::Window;

use crate::violation::{self, Violation};

/// Variables that are set in one batch.
pub(crate) mod together {
    use super::{ADDED, ENTRIES, Immediate, immediate};

    #[immediate]
    pub(crate) static EIGHT: Immediate<u64> = Immediate::new(0);
    #[immediate]
    pub(crate) static FLOAT: Immediate<f64> = Immediate::new(0.0);
    #[immediate]
    pub(crate) static FOUR: Immediate<u32> = Immediate::new(0);
    #[immediate]
    pub(crate) static TWO: Immediate<u16> = Immediate::new(0);
    #[immediate]
    pub(crate) static ONE: Immediate<u8> = Immediate::new(0);
    #[immediate]
    pub(crate) static LETTER: Immediate<char> = Immediate::new(super::FIRST_LETTER);
    #[immediate]
    pub(crate) static POINTER: Immediate<&'static u64> = Immediate::new(&ENTRIES[0]);
    #[immediate]
    pub(crate) static FUNCTION: Immediate<fn(u64) -> u64> = Immediate::new(ADDED[0]);
    #[immediate]
    pub(crate) static ODD: Immediate<bool> = Immediate::new(false);
    #[immediate]
    pub(crate) static LEVEL: Immediate<u8> = Immediate::new(0);
}

/// Variables that are set one at a time.
pub(crate) mod alone {
    use super::{Immediate, immediate};

    #[immediate]
    pub(crate) static EIGHT: Immediate<u64> = Immediate::new(0);
    #[immediate]
    pub(crate) static FOUR: Immediate<u32> = Immediate::new(0);
    #[immediate]
    pub(crate) static ODD: Immediate<bool> = Immediate::new(false);
}

/// Set by two threads, each from what it finds while it holds the lock. Plugins share it.
#[immediate(shared, name = "torture.count")]
pub(crate) static COUNT: Immediate<u64> = Immediate::new(0);

/// What the pointer points to, one after another.
static ENTRIES: [u64; 64] = [0; 64];

const FIRST_LETTER: char = '\u{10000}';
/// Letters in turn, all behind the surrogates.
const LETTERS: u64 = 0x8_0000;

fn added<const AMOUNT: u64>(number: u64) -> u64 {
    number.wrapping_add(AMOUNT)
}

/// What the function pointer points to, one after another.
static ADDED: [fn(u64) -> u64; 4] = [added::<1>, added::<2>, added::<3>, added::<5>];

fn letter(generation: u64) -> char {
    // Neighbours differ in more than one byte.
    let number = u32::from(FIRST_LETTER) as u64 + generation * 0x333 % LETTERS;
    char::from_u32(number as u32).expect("below the last letter")
}

/// The batch that sets all of `together` to a generation.
pub(crate) fn batch(generation: u64) -> Batch<'static> {
    Batch::new()
        .set(&together::EIGHT, scatter64(generation))
        .set(&together::FLOAT, f64::from_bits(scatter64(generation)))
        .set(&together::FOUR, scatter32(generation))
        .set(&together::TWO, scatter16(generation))
        .set(&together::ONE, scatter8(generation))
        .set(&together::LETTER, letter(generation))
        .set(&together::POINTER, &ENTRIES[generation as usize % ENTRIES.len()])
        .set(&together::FUNCTION, ADDED[generation as usize % ADDED.len()])
        .set(&together::ODD, generation % 2 == 1)
        .set(&together::LEVEL, (generation % 8) as u8)
}

/// The generation of an eight-byte value, or the four that the others hold.
#[derive(Clone, Copy)]
pub(crate) enum Tells {
    /// The bits tell their generation, and a mixture that it is one.
    Itself(fn(u64) -> Option<u64>),
    /// The bits are those of several generations: what each would give.
    Among(fn(u64) -> u64),
}

/// A kind of site.
#[derive(Clone, Copy)]
pub(crate) struct Site {
    /// Its name in a report.
    pub(crate) name: &'static str,
    /// Reads.
    pub(crate) read: fn() -> u64,
    /// How what was read tells its generation.
    pub(crate) tells: Tells,
    /// The sets that it follows.
    pub(crate) window: &'static Window,
}

/// The sets of `together`.
pub(crate) static TOGETHER: Window = Window::new();
/// The sets of each of `alone`.
pub(crate) static ALONE: [Window; 3] = [const { Window::new() }; 3];
/// The sets of `COUNT`.
pub(crate) static COUNTED: Window = Window::new();

fn gather_four(bits: u64) -> Option<u64> {
    gather32(u32::try_from(bits).ok()?)
}

// Functions that differ in more than their name: LLVM merges identical ones, and their sites.
macro_rules! reads {
    ($($name:ident: $read:expr;)*) => { $(
        #[inline(never)]
        fn $name<const PLACE: u64>() -> u64 {
            std::hint::black_box(($read) ^ PLACE) ^ PLACE
        }
    )* };
}

reads! {
    eight: immediate_read!(together::EIGHT);
    float: immediate_read!(together::FLOAT).to_bits();
    four: u64::from(immediate_read!(together::FOUR));
    two: u64::from(immediate_read!(together::TWO));
    one: u64::from(immediate_read!(together::ONE));
    character: u64::from(u32::from(immediate_read!(together::LETTER)));
    pointer: std::ptr::from_ref(immediate_read!(together::POINTER)).addr() as u64;
    function: immediate_read!(together::FUNCTION)(PLACE).wrapping_sub(PLACE);
    odd: u64::from(immediate_read!(together::ODD));
    branch: u64::from(immediate_if!(together::ODD));
    likely: u64::from(immediate_if!(likely together::ODD));
    arms: immediate_if!(together::ODD => { PLACE ^ 1 } else { PLACE }) ^ PLACE;
    above: u64::from(immediate_if!(together::LEVEL >= 4));
    equal: u64::from(immediate_if!(together::LEVEL == 3));
    closure: u64::from(immediate_if!(together::LEVEL, |level| level & 2 != 0));
    alone_eight: immediate_read!(alone::EIGHT);
    alone_four: u64::from(immediate_read!(alone::FOUR));
    alone_branch: u64::from(immediate_if!(alone::ODD));
    count: immediate_read!(COUNT);
}

macro_rules! sites {
    ($($read:ident $name:literal $window:expr, $tells:expr;)*) => {
        [$(
            Site { name: $name, read: $read::<0>, tells: $tells, window: &$window },
            Site { name: $name, read: $read::<1>, tells: $tells, window: &$window },
            Site { name: $name, read: $read::<2>, tells: $tells, window: &$window }
        ),*]
    };
}

use Tells::{Among, Itself};

/// Every site, three of a kind.
pub(crate) static SITES: [Site; 57] = sites! {
    eight "u64" TOGETHER, Itself(gather64);
    float "f64" TOGETHER, Itself(gather64);
    four "u32" TOGETHER, Itself(gather_four);
    two "u16" TOGETHER, Among(|generation| scatter16(generation).into());
    one "u8" TOGETHER, Among(|generation| scatter8(generation).into());
    character "char" TOGETHER, Among(|generation| u32::from(letter(generation)).into());
    pointer "&u64" TOGETHER, Among(|generation| {
        std::ptr::from_ref(&ENTRIES[generation as usize % ENTRIES.len()]).addr() as u64
    });
    function "fn" TOGETHER, Among(|generation| ADDED[generation as usize % ADDED.len()](0));
    odd "bool" TOGETHER, Among(|generation| generation % 2);
    branch "branch" TOGETHER, Among(|generation| generation % 2);
    likely "likely branch" TOGETHER, Among(|generation| generation % 2);
    arms "branch with two arms" TOGETHER, Among(|generation| generation % 2);
    above "branch at >= 4" TOGETHER, Among(|generation| u64::from(generation % 8 >= 4));
    equal "branch at == 3" TOGETHER, Among(|generation| u64::from(generation % 8 == 3));
    closure "branch by closure" TOGETHER, Among(|generation| (generation >> 1) & 1);
    alone_eight "u64 set alone" ALONE[0], Itself(gather64);
    alone_four "u32 set alone" ALONE[1], Itself(gather_four);
    alone_branch "branch set alone" ALONE[2], Among(|generation| generation % 2);
    count "u64 set under the lock" COUNTED, Itself(gather64);
};

impl Site {
    /// Reads, and checks that the value is whole and of a set that may be seen: not older than
    /// `seen`, which is raised.
    pub(crate) fn check(&self, seen: &mut u64) {
        let (bits, from, to) = self.window.read(self.read);
        self.judge(bits, (from, to), seen);
    }

    /// Checks what was read between two looks at the window.
    pub(crate) fn judge(&self, bits: u64, (from, to): (u64, u64), seen: &mut u64) {
        let wrong = |what, generation, from| {
            let (site, allowed) = (self.name, (from, to));
            violation::exit(&Violation { what, site, bits, generation, allowed })
        };
        match self.tells {
            Itself(gather) => match gather(bits) {
                None => wrong("a mixture of two values", None, from),
                Some(generation) if generation < from || generation > to => {
                    wrong("a value of another time", Some(generation), from)
                }
                Some(generation) if generation < *seen => {
                    wrong("older than what was seen before", Some(generation), *seen)
                }
                Some(generation) => *seen = generation,
            },
            Among(of) if is_one_of(from, to, |generation| of(generation) == bits) => {}
            Among(_) => wrong("a value of another time", None, from),
        }
    }
}
