//! Versions of apk-tools: numbers, one letter, suffixes (`_alpha`, `_p2`) and a revision (`-r3`).
//! Numbers after the first that begin with a zero are compared as decimal fractions.

use std::cmp::Ordering;

use super::{Number, compare_digits, compare_padded, is_number};

#[derive(Clone, Debug)]
pub(super) struct Version {
    numbers: Vec<String>,
    letter: Option<u8>,
    /// Suffixes of the version: the index of each in [`SUFFIXES`], and its number.
    suffixes: Vec<(usize, Number)>,
    revision: Number,
}

/// Suffixes of Alpine package versions, in their order. The empty one is the missing suffix of a
/// shorter version.
const SUFFIXES: [&str; 10] = ["alpha", "beta", "pre", "rc", "", "cvs", "svn", "git", "hg", "p"];
/// Index of the empty suffix in [`SUFFIXES`].
const NO_SUFFIX: usize = 4;

pub(super) fn parse(text: &str) -> Option<Version> {
    let (text, revision) = match text.rsplit_once("-r") {
        Some((version, revision)) => (version, is_number(revision).then_some(revision)?),
        None => (text, "0"),
    };
    // The commit hash after `~` is ignored.
    let text = text.split_once('~').map_or(text, |(version, _)| version);
    let mut parts = text.split('_');
    let numbers = parts.next()?;
    let letter = numbers.bytes().last().filter(u8::is_ascii_lowercase);
    let numbers = letter.map_or(numbers, |_| &numbers[..numbers.len() - 1]);
    let number = |text: &str| is_number(text).then(|| text.to_owned());
    Some(Version {
        numbers: numbers.split('.').map(number).collect::<Option<_>>()?,
        letter,
        suffixes: parts.map(read_suffix).collect::<Option<_>>()?,
        revision: Number::new(revision),
    })
}

fn read_suffix(text: &str) -> Option<(usize, Number)> {
    let end = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
    let (word, number) = text.split_at(end);
    let suffix = SUFFIXES.iter().position(|suffix| *suffix == word)?;
    let is_valid = suffix != NO_SUFFIX && (number.is_empty() || is_number(number));
    is_valid.then(|| (suffix, Number::new(number)))
}

fn compare_numbers(at: usize, a: &str, b: &str) -> Ordering {
    if at > 0 && (a.starts_with('0') || b.starts_with('0')) {
        return a.cmp(b);
    }
    compare_digits(a, b)
}

impl Version {
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let pairs = self.numbers.iter().zip(&other.numbers).enumerate();
        let numbers = pairs.map(|(at, (a, b))| compare_numbers(at, a, b));
        let no_suffix = (NO_SUFFIX, Number::new("0"));
        numbers
            .chain([self.numbers.len().cmp(&other.numbers.len()), self.letter.cmp(&other.letter)])
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
            .then_with(|| compare_padded(&self.suffixes, &other.suffixes, &no_suffix))
            .then_with(|| self.revision.cmp(&other.revision))
    }
}
