//! Mutates seeds to inputs.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

/// Maximum size of an input, in bytes.
const MOST_BYTES: usize = 100_000;
/// Maximum number of mutations of one input.
const MOST_CHANGES: usize = 8;
/// Texts with a special meaning for parsers.
const PIECES: [&str; 40] = [
    "0",
    "-1",
    "1e999",
    "9223372036854775808",
    "18446744073709551616",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\\u0000",
    "\\ud800",
    "\u{feff}",
    "\u{202e}",
    "é",
    "😀",
    "\0",
    "\n",
    "\r\n",
    "\t",
    " ",
    ",",
    ";",
    ":",
    "\"",
    "'",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "%",
    "%00",
    "*",
    "**",
    "/",
    "\\",
    "..",
    "#",
];

/// Creates inputs from seeds. The same number gives the same inputs.
#[derive(Debug)]
pub struct Mutator {
    seeds: Vec<Vec<u8>>,
    random: StdRng,
}

impl Mutator {
    /// Without seeds, inputs start empty.
    #[must_use]
    pub fn new(seeds: Vec<Vec<u8>>, number: u64) -> Self {
        Self { seeds, random: StdRng::seed_from_u64(number) }
    }

    /// Returns the next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.seeds.choose(&mut self.random).cloned().unwrap_or_default();
        for _ in 0..self.random.random_range(0..=MOST_CHANGES) {
            self.change(&mut input);
            input.truncate(MOST_BYTES);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        match self.random.random_range(0..10) {
            0 => self.flip(input),
            1 => {
                let (from, to) = self.range(input.len(), 64);
                input.drain(from..to);
            }
            2 => self.insert_piece(input),
            3 => self.repeat(input, 8, 64),
            // Reveals exponential growth, and comparisons with all former items.
            4 => self.repeat(input, 4_096, 256),
            5 => self.insert_of_another(input),
            6 => self.renumber(input),
            7 => {
                let at = self.at(input.len());
                input.truncate(at);
            }
            8 => self.swap(input),
            _ => self.nest(input),
        }
    }

    fn at(&mut self, length: usize) -> usize {
        self.random.random_range(0..=length)
    }

    /// Returns a range of at most `most` bytes.
    fn range(&mut self, length: usize, most: usize) -> (usize, usize) {
        let from = self.at(length);
        (from, from + self.at((length - from).min(most)))
    }

    fn flip(&mut self, input: &mut [u8]) {
        if let Some(at) = input.len().checked_sub(1) {
            let at = self.at(at);
            input[at] = self.random.random();
        }
    }

    fn insert_piece(&mut self, input: &mut Vec<u8>) {
        let at = self.at(input.len());
        let piece = PIECES.choose(&mut self.random).copied().unwrap_or_default();
        input.splice(at..at, piece.bytes());
    }

    fn repeat(&mut self, input: &mut Vec<u8>, most_bytes: usize, most_times: usize) {
        let (from, to) = self.range(input.len(), most_bytes);
        let room = MOST_BYTES.saturating_sub(input.len()) / (to - from).max(1);
        let times = self.random.random_range(0..=most_times.min(room));
        let repeated = input[from..to].repeat(times);
        input.splice(to..to, repeated);
    }

    fn insert_of_another(&mut self, input: &mut Vec<u8>) {
        let Some(other) = self.seeds.choose(&mut self.random).cloned() else { return };
        let (from, to) = self.range(other.len(), 2_048);
        let at = self.at(input.len());
        input.splice(at..at, other[from..to].iter().copied());
    }

    /// Repeats a range and counts up its digits, which creates different keys, names and sections.
    fn renumber(&mut self, input: &mut Vec<u8>) {
        let (from, to) = self.range(input.len(), 256);
        let piece = input[from..to].to_vec();
        let room = MOST_BYTES.saturating_sub(input.len()) / (piece.len() + 5);
        let times = self.random.random_range(0..=room.min(4_096));
        let place = piece.iter().position(u8::is_ascii_alphanumeric);
        let copies = (0..times).flat_map(|n| {
            let mut copy = piece.clone();
            if let Some(place) = place {
                copy.splice(place..place, n.to_string().into_bytes());
            }
            copy
        });
        let copies: Vec<u8> = copies.collect();
        input.splice(to..to, copies);
    }

    fn swap(&mut self, input: &mut [u8]) {
        let (from, to) = self.range(input.len(), 64);
        let length = to - from;
        if length > 0 && to + length <= input.len() {
            let (left, right) = input.split_at_mut(to);
            left[from..].swap_with_slice(&mut right[..length]);
        }
    }

    fn nest(&mut self, input: &mut Vec<u8>) {
        let (from, to) = self.range(input.len(), 1_024);
        let depth = self.random.random_range(1..200);
        let (open, close) = [("[", "]"), ("{\"a\":", "}"), ("(", ")"), ("[[", "]]"), ("!", "")]
            .choose(&mut self.random)
            .copied()
            .unwrap_or_default();
        input.splice(to..to, close.repeat(depth).into_bytes());
        input.splice(from..from, open.repeat(depth).into_bytes());
    }
}
