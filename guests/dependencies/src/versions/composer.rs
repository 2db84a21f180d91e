//! Versions of Composer: ordered by PHP's `version_compare` after Composer's normalization.
//! Named branches (`dev-main`) are not ordered.

use std::cmp::Ordering;

use super::{Number, compare_padded, is_number};

#[derive(Clone, Debug)]
pub(super) struct Version(Vec<Part>);

/// Part of a Composer version, in PHP's order: any other word, dev, alpha, beta, RC, the end of the
/// version, a number, patch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Word(String),
    Dev,
    Alpha,
    Beta,
    Candidate,
    End,
    Number(Number),
    Patch,
}

pub(super) fn parse(text: &str) -> Option<Version> {
    let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let text = text.split_once('+').map_or(text, |(version, _)| version);
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if let Some(branch) = numeric_branch(text) {
        return Some(branch);
    }
    // A constraint: `8.*`, `1.0.x`, `1.0 - 2.0`.
    let is_wildcard = |part: &str| {
        part.eq_ignore_ascii_case("x") || !part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    if text.split(['.', '-', '_']).any(is_wildcard) {
        return None;
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let class = class(first);
        let end = rest.find(|c: char| self::class(c) != class).unwrap_or(rest.len());
        let (head, tail) = rest.split_at(end);
        match class {
            CharacterClass::Digit => parts.push(Part::Number(Number::new(head))),
            CharacterClass::Letter => parts.push(word(&head.to_lowercase())),
            CharacterClass::Between => {}
        }
        rest = tail;
    }
    Some(Version(filled(parts)))
}

/// Parses a numeric branch of Composer: `2.0.x-dev` is `2.0.9999999.9999999-dev`, after all
/// versions of 2.0. `None` for other versions.
fn numeric_branch(text: &str) -> Option<Version> {
    const LATEST: &str = "9999999";
    let text = text.to_lowercase();
    let branch = text.strip_suffix("-dev").or_else(|| text.strip_suffix(".dev"))?;
    if !branch.contains(['x', '*']) {
        return None;
    }
    let number = |part| match part {
        "x" | "*" => Some(LATEST),
        part => is_number(part).then_some(part),
    };
    let mut numbers: Vec<&str> = branch.split('.').map(number).collect::<Option<_>>()?;
    numbers.resize(numbers.len().max(4), LATEST);
    let numbers = numbers.into_iter().map(|number| Part::Number(Number::new(number)));
    Some(Version(numbers.chain([Part::Dev]).collect()))
}

#[derive(PartialEq, Eq)]
enum CharacterClass {
    Digit,
    Letter,
    Between,
}

fn class(c: char) -> CharacterClass {
    match c {
        _ if c.is_ascii_digit() => CharacterClass::Digit,
        '.' | '-' | '_' => CharacterClass::Between,
        _ => CharacterClass::Letter,
    }
}

fn word(word: &str) -> Part {
    match word {
        "dev" => Part::Dev,
        "alpha" | "a" => Part::Alpha,
        "beta" | "b" => Part::Beta,
        "rc" | "c" => Part::Candidate,
        "stable" => Part::End,
        "patch" | "pl" | "p" => Part::Patch,
        other => Part::Word(other.to_owned()),
    }
}

/// Pads the numbers at the beginning of a version to four, as Composer does, and drops `stable`.
fn filled(mut parts: Vec<Part>) -> Vec<Part> {
    parts.retain(|part| *part != Part::End);
    let number = |part: &Part| matches!(part, Part::Number(_));
    let count = parts.iter().position(|part| !number(part)).unwrap_or(parts.len());
    let zeros = std::iter::repeat_n(Part::Number(Number::new("0")), 4_usize.saturating_sub(count));
    parts.splice(count..count, zeros);
    parts
}

impl Version {
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        compare_padded(&self.0, &other.0, &Part::End)
    }
}
