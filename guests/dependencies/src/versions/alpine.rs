//! Versions of apk-tools: numbers, one letter, suffixes (`_alpha`, `_p2`) and a revision (`-r3`).
//! Numbers after the first that begin with a zero are compared as decimal fractions.

use std::cmp::Ordering;

use super::{Number, compare_digits, is_number};

#[derive(Clone, Debug)]
pub(super) struct Version {
    numbers: Vec<String>,
    letter: Option<u8>,
    suffixes: Vec<(Suffix, Number)>,
    revision: Number,
}

/// Suffix of an Alpine package version. Those before `None` in this order sort before the version
/// without a suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Suffix {
    Alpha,
    Beta,
    Pre,
    Rc,
    None,
    Cvs,
    Svn,
    Git,
    Hg,
    P,
}

fn suffix(word: &str) -> Option<Suffix> {
    Some(match word {
        "alpha" => Suffix::Alpha,
        "beta" => Suffix::Beta,
        "pre" => Suffix::Pre,
        "rc" => Suffix::Rc,
        "cvs" => Suffix::Cvs,
        "svn" => Suffix::Svn,
        "git" => Suffix::Git,
        "hg" => Suffix::Hg,
        "p" => Suffix::P,
        _ => return None,
    })
}

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

fn read_suffix(text: &str) -> Option<(Suffix, Number)> {
    let end = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
    let (word, number) = text.split_at(end);
    (number.is_empty() || is_number(number)).then_some(())?;
    Some((suffix(word)?, Number::new(number)))
}

fn compare_numbers(at: usize, a: &str, b: &str) -> Ordering {
    if at > 0 && (a.starts_with('0') || b.starts_with('0')) {
        return a.cmp(b);
    }
    compare_digits(a, b)
}

impl Version {
    fn suffix(&self, at: usize) -> (Suffix, Number) {
        let none = || (Suffix::None, Number::new("0"));
        self.suffixes.get(at).cloned().unwrap_or_else(none)
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let pairs = self.numbers.iter().zip(&other.numbers).enumerate();
        let numbers = pairs.map(|(at, (a, b))| compare_numbers(at, a, b));
        let suffixes = 0..self.suffixes.len().max(other.suffixes.len());
        numbers
            .chain([self.numbers.len().cmp(&other.numbers.len()), self.letter.cmp(&other.letter)])
            .chain(suffixes.map(|at| self.suffix(at).cmp(&other.suffix(at))))
            .chain([self.revision.cmp(&other.revision)])
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}
