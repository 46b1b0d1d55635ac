//! The table of words that the scan looks for. There are two: the same words in another layout, as
//! after a reload, so that a change of the table in the middle of the work changes no count.

const PLACES: usize = 256;
/// Longer words are in no table: their key does not tell them apart.
const LONGEST: usize = 8;

/// Words, and which bytes a word is made of.
#[derive(Debug)]
pub(crate) struct Table {
    /// Each byte in lower case; 0 for a byte that is not part of a word.
    fold: [u8; 256],
    /// Keys of words; 0 where there is none.
    places: [u64; PLACES],
    /// A key times this gives its place, in the upper bits.
    multiplier: u64,
    pub(crate) is_second: bool,
}

/// In use at first.
pub(crate) static FIRST: Table = Table::new(false, 0x9e37_79b9_7f4a_7c15);
/// The same words in other places.
pub(crate) static SECOND: Table = Table::new(true, 0xd6e8_feb8_6659_fd93);

const WORDS: &[&str] = &[
    "the", "and", "of", "in", "that", "had", "was", "keeper", "tide", "sea", "water", "wind",
    "wheel", "wheels", "machine", "pen", "line", "lines", "ink", "boy", "mother", "harbour",
    "lamp", "space", "between", "curve", "height", "feet", "inches", "year", "hour", "book",
    "page", "letter", "word", "number", "time", "day", "work", "house", "people", "red",
    "measured", "noon", "morning", "sunday", "november", "boats", "wall", "church", "weather",
];

/// The key of a word with one letter more; that of no letters is 0.
#[inline(always)]
pub(crate) const fn extend(key: u64, letter: u8) -> u64 {
    key << 8 | letter as u64
}

impl Table {
    const fn new(is_second: bool, multiplier: u64) -> Table {
        let mut fold = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let letter = byte as u8;
            // Bytes from 128 on are letters in UTF-8 and in most other encodings.
            if letter.is_ascii_alphanumeric() || letter >= 128 {
                fold[byte] = letter.to_ascii_lowercase();
            }
            byte += 1;
        }
        let mut table = Table { fold, places: [0; PLACES], multiplier, is_second };
        let mut at = 0;
        while at < WORDS.len() {
            table.add(WORDS[at].as_bytes());
            at += 1;
        }
        table
    }

    const fn add(&mut self, letters: &[u8]) {
        assert!(letters.len() <= LONGEST, "a word of the table is too long");
        let mut key = 0;
        let mut at = 0;
        while at < letters.len() {
            key = extend(key, letters[at]);
            at += 1;
        }
        let mut place = self.first_place(key);
        while self.places[place] != 0 {
            place = (place + 1) % PLACES;
        }
        self.places[place] = key;
    }

    #[inline(always)]
    const fn first_place(&self, key: u64) -> usize {
        (key.wrapping_mul(self.multiplier) >> 56) as usize
    }

    /// The byte in lower case, or 0 if it is not part of a word.
    #[inline(always)]
    pub(crate) fn fold(&self, byte: u8) -> u8 {
        self.fold[usize::from(byte)]
    }

    /// Whether the word that has this key and length is in the table.
    #[inline(always)]
    pub(crate) fn has(&self, key: u64, length: usize) -> bool {
        let mut place = self.first_place(key);
        while self.places[place] != 0 {
            if self.places[place] == key {
                return length <= LONGEST;
            }
            place = (place + 1) % PLACES;
        }
        false
    }
}
