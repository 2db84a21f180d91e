//! Versions of RubyGems (`Gem::Version`): numbers and words separated by dots, and by changes
//! between digit and letter. A hyphen begins a pre-release. Words sort before numbers. Zeros before
//! the end or a word are ignored. A platform after the version, as in `1.13.6-x86_64-linux`, is no
//! part of it.

use std::cmp::Ordering;

use super::{Number, compare_padded};

#[derive(Clone, Debug)]
pub(super) struct Version(Vec<Segment>);

/// Part of a RubyGems version. Words sort before numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    Word(String),
    Number(Number),
}

/// First words of the platforms of gems. Digits or a further word may follow: `mingw32`,
/// `arm64-darwin`, `x86_64-linux-musl`.
const PLATFORMS: [&str; 32] = [
    "aarch",
    "aix",
    "amd",
    "arm",
    "armhf",
    "armv5l",
    "armv5tel",
    "armv6l",
    "armv7l",
    "armv8l",
    "cygwin",
    "dalvik",
    "darwin",
    "dotnet",
    "freebsd",
    "i386",
    "i486",
    "i586",
    "i686",
    "java",
    "jruby",
    "linux",
    "mingw",
    "mswin",
    "powerpc",
    "ppc64le",
    "riscv64",
    "s390x",
    "solaris",
    "universal",
    "x64",
    "x86",
];

impl Segment {
    fn is_zero(&self) -> bool {
        matches!(self, Self::Number(number) if number.is_zero())
    }
}

pub(super) fn parse(text: &str) -> Option<Version> {
    let text = without_platform(text);
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    if !text.starts_with(|c: char| c.is_ascii_digit()) || !text.chars().all(good) {
        return None;
    }
    let text = text.replace('-', ".pre.");
    Some(Version(canonical(split(&text))))
}

fn without_platform(text: &str) -> &str {
    let mut hyphens = text.match_indices('-').map(|(at, _)| at);
    let platform = hyphens.find(|at| is_platform(&text[at + 1..]));
    platform.map_or(text, |at| &text[..at])
}

/// Whether two gem versions have the same platform, or one of them has none and so stands for all.
pub(super) fn may_share_platform(one: &str, other: &str) -> bool {
    let (one, other) = (platform(one), platform(other));
    one.is_empty() || other.is_empty() || one == other
}

/// Returns the platform of a gem version with the hyphen before it; empty if it has none.
fn platform(text: &str) -> &str {
    &text[without_platform(text).len()..]
}

fn is_platform(text: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c == '.' || c.is_alphabetic());
    PLATFORMS.iter().any(|word| text.strip_prefix(word).is_some_and(ends))
}

fn split(text: &str) -> Vec<Segment> {
    let mut segments = Vec::new();
    for part in text.split('.').filter(|part| !part.is_empty()) {
        let mut rest = part;
        while let Some(first) = rest.chars().next() {
            let digits = first.is_ascii_digit();
            let end = rest.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(rest.len());
            let (head, tail) = rest.split_at(end);
            segments.push(if digits {
                Segment::Number(Number::new(head))
            } else {
                Segment::Word(head.to_owned())
            });
            rest = tail;
        }
    }
    segments
}

/// Drops zeros before the first word of a gem version and at the version's end.
fn canonical(segments: Vec<Segment>) -> Vec<Segment> {
    let word = segments.iter().position(|segment| matches!(segment, Segment::Word(_)));
    let (numbers, rest) = segments.split_at(word.unwrap_or(segments.len()));
    let trimmed = |part: &[Segment]| {
        let end = part.iter().rposition(|segment| !segment.is_zero()).map_or(0, |last| last + 1);
        part.iter().take(end).cloned().collect::<Vec<_>>()
    };
    let mut canonical = trimmed(numbers);
    canonical.extend(trimmed(rest));
    canonical
}

impl Version {
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        compare_padded(&self.0, &other.0, &Segment::Number(Number::new("0")))
    }
}
