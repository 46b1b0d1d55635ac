//! The hot path: goes through a piece of text line by line and word by word, and counts.

use memchr::memchr;

use crate::switches::Switches;
use crate::table::extend;

/// How many copies of the scan are compiled for each kind of switches. Where code happens to lie
/// changes its speed by several per cent, more than any check; so each round takes another copy.
pub(crate) const COPIES: usize = 6;

/// The copies for one kind of switches.
pub(crate) fn copies<S: Switches>() -> [fn(&[u8]) -> Counts; COPIES] {
    [scan::<S, 0>, scan::<S, 1>, scan::<S, 2>, scan::<S, 3>, scan::<S, 4>, scan::<S, 5>]
}

/// What a scan of one piece counted.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    /// The copy that counted. It also keeps the compiler from merging the copies.
    #[expect(dead_code, reason = "what differs between the copies")]
    copy: usize,
    pub(crate) totals: Totals,
    pub(crate) profile: Profile,
}

/// Counted always.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) lines: u64,
    pub(crate) words: u64,
    pub(crate) bytes: u64,
    /// Words that are in the table.
    pub(crate) matches: u64,
    /// Lines longer than the limit.
    pub(crate) long: u64,
}

/// Counted by switches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profile {
    /// Lines that were scanned with the first table, and with the second.
    pub(crate) by_table: [u64; 2],
    /// For each part, while its switch is on: events by size.
    pub(crate) parts: [[u32; SIZES]; PARTS],
}

const SIZES: usize = 16;
pub(crate) const PARTS: usize = 7;
pub(crate) const PART_NAMES: [&str; PARTS] = [
    "lengths of lines",
    "lengths of words",
    "words in the table",
    "initial capitals",
    "logged lines",
    "logged words",
    "logged digests",
];
const LINES: usize = 0;
const WORDS: usize = 1;
const MATCHES: usize = 2;
const CAPITALS: usize = 3;
const LOGGED_LINES: usize = 4;
const LOGGED_MATCHES: usize = 5;
const LOGGED_DIGESTS: usize = 6;

impl Profile {
    /// A call, as into any profiler or logger; inlined, what it computes would take registers and
    /// instructions of the path on which it is off.
    #[inline(never)]
    fn add(&mut self, part: usize, size: usize) {
        self.parts[part][size.min(SIZES - 1)] += 1;
    }

    #[inline(never)]
    fn add_digest(&mut self, line: &[u8]) {
        let digest = line.iter().fold(0_u8, |digest, byte| digest.rotate_left(3) ^ byte);
        self.add(LOGGED_DIGESTS, usize::from(digest) % SIZES);
    }
}

/// Scans one piece of text.
#[inline(never)]
pub(crate) fn scan<S: Switches, const COPY: usize>(text: &[u8]) -> Counts {
    // Two variables, not one: the totals shall live in registers, and the profile cannot.
    let mut totals = Totals::default();
    let mut profile = Profile::default();
    let mut rest = text;
    while !rest.is_empty() {
        let length = memchr(b'\n', rest).unwrap_or(rest.len());
        let (line, next) = rest.split_at(length);
        rest = next.get(1..).unwrap_or_default();
        scan_line::<S>(line, &mut totals, &mut profile);
    }
    totals.bytes = text.len() as u64;
    Counts { copy: COPY, totals, profile }
}

#[inline(always)]
fn scan_line<S: Switches>(line: &[u8], totals: &mut Totals, profile: &mut Profile) {
    let table = S::table();
    totals.lines += 1;
    totals.long += u64::from(line.len() > S::limit() as usize);
    profile.by_table[usize::from(table.is_second)] += 1;
    let mut rest = line;
    while let [initial, after @ ..] = rest {
        rest = after;
        let mut key = extend(0, table.fold(*initial));
        if key == 0 {
            continue;
        }
        while let [byte, next @ ..] = rest {
            let letter = table.fold(*byte);
            if letter == 0 {
                break;
            }
            key = extend(key, letter);
            rest = next;
        }
        let length = after.len() - rest.len() + 1;
        totals.words += 1;
        if S::words() {
            profile.add(WORDS, length);
        }
        if S::capitals() && initial.is_ascii_uppercase() {
            profile.add(CAPITALS, usize::from(initial - b'A') / 2);
        }
        if table.has(key, length) {
            totals.matches += 1;
            if S::matches() {
                profile.add(MATCHES, length);
            }
            if S::logs_matches() {
                profile.add(LOGGED_MATCHES, rest.len() / 8);
            }
        }
    }
    if S::lines() {
        profile.add(LINES, line.len() / 8);
    }
    if S::logs_lines() {
        profile.add(LOGGED_LINES, line.len() % SIZES);
    }
    if S::logs_digests() {
        profile.add_digest(line);
    }
}
