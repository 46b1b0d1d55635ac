//! The text that is scanned: files, or a sample that is made from `data/sample.txt`; cut into
//! pieces at line ends.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use memchr::memchr;

/// The pieces are this long or a little longer: half of a first-level data cache, so that memory
/// does not hide what a switch costs.
const PIECE: usize = 16 << 10;
/// A line longer than this is cut, so that a piece is scanned in a moment.
const LONGEST_LINE: usize = 1 << 20;
/// A device without end must not fill the memory.
const LARGEST_FILE: u64 = 1 << 30;
/// Length of the sample.
const SAMPLE: usize = 256 << 10;

const SENTENCES: &str = include_str!("../../../data/sample.txt");

/// Text in pieces.
#[derive(Debug)]
pub(crate) struct Text {
    /// What it is, for people.
    pub(crate) name: String,
    /// How often a short text was repeated to fill one piece.
    pub(crate) repeated: usize,
    pub(crate) pieces: Vec<Vec<u8>>,
}

impl Text {
    /// Reads the files, or makes the sample.
    ///
    /// # Errors
    ///
    /// One line that says which file cannot be used, why, and what would be right.
    pub(crate) fn read(files: &[PathBuf]) -> Result<Text, String> {
        let (name, bytes) = match files {
            [] => ("the sample text".to_string(), sample()),
            [file] => (file.display().to_string(), read(file)?),
            many => {
                let mut all = Vec::new();
                for file in many {
                    all.extend(read(file)?);
                    if all.last() != Some(&b'\n') {
                        all.push(b'\n');
                    }
                }
                (format!("{} files", many.len()), all)
            }
        };
        let (repeated, bytes) = fill(bytes);
        Ok(Text { name, repeated, pieces: cut(&bytes) })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let cannot = |why: String, right: &str| Err(format!("cannot read {path:?}: {why}; {right}"));
    if path.is_dir() {
        return cannot("it is a directory".into(), "name the files in it");
    }
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(LARGEST_FILE).read_to_end(&mut bytes)) {
        Err(error) => {
            cannot(error.to_string(), "name a text file, or no file to scan the sample text")
        }
        Ok(0) => cannot("it is empty".into(), "name a file with at least one line"),
        Ok(length) if length as u64 == LARGEST_FILE => {
            cannot("it has a gigabyte or more".into(), "name a part of it, made with head -c 100M")
        }
        Ok(_) => Ok(bytes),
    }
}

/// Repeats a text that is shorter than one piece.
fn fill(mut bytes: Vec<u8>) -> (usize, Vec<u8>) {
    if bytes.len() >= PIECE {
        return (1, bytes);
    }
    if bytes.last() != Some(&b'\n') {
        bytes.push(b'\n');
    }
    let times = PIECE.div_ceil(bytes.len());
    (times, bytes.repeat(times))
}

fn cut(mut rest: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let from = PIECE.min(rest.len()) - 1;
        let to = rest.len().min(from + LONGEST_LINE);
        let end = memchr(b'\n', &rest[from..to]).map_or(to, |place| from + place + 1);
        let (piece, next) = rest.split_at(end);
        pieces.push(piece.to_vec());
        rest = next;
    }
    pieces
}

/// Prose of numbered paragraphs, each of its own width, from the sentences of the sample in an
/// order that is the same in every run.
fn sample() -> Vec<u8> {
    let sentences: Vec<&str> = SENTENCES
        .lines()
        .flat_map(|paragraph| paragraph.split_inclusive(". "))
        .map(str::trim)
        .filter(|sentence| !sentence.is_empty())
        .collect();
    let mut state = 0x2545_f491_u32;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as usize % below
    };
    let mut text = String::with_capacity(SAMPLE + 1024);
    for number in 1.. {
        let width = 48 + draw(64);
        let mut line = format!("{number}.");
        for _ in 0..3 + draw(5) {
            for word in sentences[draw(sentences.len())].split(' ') {
                if line.len() + word.len() >= width {
                    text.push_str(&line);
                    text.push('\n');
                    line.clear();
                } else {
                    line.push(' ');
                }
                line.push_str(word);
            }
        }
        text.push_str(&line);
        text.push_str("\n\n");
        if text.len() >= SAMPLE {
            break;
        }
    }
    text.into_bytes()
}
