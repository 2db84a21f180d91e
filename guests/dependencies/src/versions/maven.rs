//! Versions of Maven, ordered by `ComparableVersion`. A hyphen, or a change between digit and
//! letter, begins a nested list. Nothing follows a nested list, so a version is a chain of lists,
//! and a comparison needs no recursion.
//!
//! Maven's own comparison has cycles: `1.p.a.1 < 1.0.b1 < 1 < 1.p.a.1`. Here, if a word and a list
//! are on different sides of the release, the sides decide. Everything else is as in Maven, so the
//! order is total.

use std::cmp::Ordering;

use super::Number;

/// A Maven version: a chain of lists, each nested at the end of the previous one.
#[derive(Clone, Debug)]
pub(super) struct Version(Vec<Vec<VersionToken>>);

/// Word or number in a list of a Maven version. Words sort before numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum VersionToken {
    Word(Qualifier),
    Number(Number),
}

/// A word of a Maven version, in Maven's order; the empty word is a release.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Qualifier {
    Alpha,
    Beta,
    Milestone,
    Candidate,
    Snapshot,
    Release,
    ServicePack,
    Other(String),
}

impl Qualifier {
    fn new(word: &str, before_digit: bool) -> Self {
        match word {
            "alpha" => Self::Alpha,
            "a" if before_digit => Self::Alpha,
            "beta" => Self::Beta,
            "b" if before_digit => Self::Beta,
            "milestone" => Self::Milestone,
            "m" if before_digit => Self::Milestone,
            "rc" | "cr" => Self::Candidate,
            "snapshot" => Self::Snapshot,
            "" | "ga" | "final" | "release" => Self::Release,
            "sp" => Self::ServicePack,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl VersionToken {
    /// Compares this item of a version with the missing item of a shorter version.
    fn beside_nothing(&self) -> Ordering {
        match self {
            Self::Number(number) if number.is_zero() => Ordering::Equal,
            Self::Number(_) => Ordering::Greater,
            Self::Word(word) => word.cmp(&Qualifier::Release),
        }
    }
}

/// Parses a Maven version; `None` for a placeholder or a range, which Maven would order like any
/// text.
pub(super) fn parse(text: &str) -> Option<Version> {
    if is_unresolved(text) {
        return None;
    }
    let mut chain = VersionBuilder { lists: vec![Vec::new()] };
    let text = text.to_lowercase();
    let (mut start, mut digits) = (0, false);
    for (at, c) in text.char_indices() {
        let token = &text[start..at];
        if c == '.' || c == '-' {
            chain.push(token, digits, false);
            start = at + c.len_utf8();
            if c == '-' {
                chain.nest();
            }
        } else if c.is_ascii_digit() != digits {
            if !token.is_empty() {
                chain.nest_before_word(digits);
                chain.push(token, digits, c.is_ascii_digit());
                chain.nest();
                start = at;
            }
            digits = c.is_ascii_digit();
        }
    }
    if start < text.len() {
        chain.nest_before_word(digits);
        chain.push(&text[start..], digits, false);
    }
    Some(chain.normalised())
}

/// Whether a text stands for a version that the build tool chooses: `${revision}`, `[1.0,2.0)`,
/// `1.+`, `LATEST`.
fn is_unresolved(text: &str) -> bool {
    let marks = |c: char| "$}{[](),<>=*".contains(c) || c.is_whitespace();
    let word = text.to_ascii_lowercase();
    text.contains(marks)
        || matches!(word.as_str(), "latest" | "release" | "+")
        || word.starts_with("latest.")
        || word.ends_with(".+")
}

struct VersionBuilder {
    lists: Vec<Vec<VersionToken>>,
}

impl VersionBuilder {
    fn push(&mut self, token: &str, digits: bool, before_digit: bool) {
        let item = match token {
            "" => VersionToken::Number(Number::new("0")),
            token if digits => VersionToken::Number(Number::new(token)),
            word => VersionToken::Word(Qualifier::new(word, before_digit)),
        };
        if let Some(list) = self.lists.last_mut() {
            list.push(item);
        }
    }

    fn nest(&mut self) {
        self.lists.push(Vec::new());
    }

    /// Begins a nested list before a word of the version, so that `.x` is read like `-x`.
    fn nest_before_word(&mut self, digits: bool) {
        if !digits && self.lists.last().is_some_and(|list| !list.is_empty()) {
            self.nest();
        }
    }

    /// Returns the version without zeros before words, items equal to a release at the end of each
    /// list, and empty lists at the end.
    fn normalised(mut self) -> Version {
        for list in &mut self.lists {
            drop_zeros_before_words(list);
            while list.last().is_some_and(|item| item.beside_nothing().is_eq()) {
                list.pop();
            }
        }
        while self.lists.last().is_some_and(Vec::is_empty) {
            self.lists.pop();
        }
        Version(self.lists)
    }
}

/// Drops zeros before words in a part of a version, as Maven does since 4.0: `1.0.rc.1` is
/// `1.rc.1`, which is before `1`.
fn drop_zeros_before_words(list: &mut Vec<VersionToken>) {
    let mut before_word = false;
    for at in (0..list.len()).rev() {
        match &list[at] {
            VersionToken::Number(number) if number.is_zero() && before_word => {
                list.remove(at);
            }
            item => before_word = matches!(item, VersionToken::Word(_)),
        }
    }
}

/// What a version has at an index of its first list.
enum VersionListElement<'a> {
    VersionToken(&'a VersionToken),
    /// The list that is nested at the end of the first list, with the lists nested in it.
    List(&'a [Vec<VersionToken>]),
    Nothing,
}

fn slot(lists: &[Vec<VersionToken>], at: usize) -> VersionListElement<'_> {
    let Some((list, rest)) = lists.split_first() else { return VersionListElement::Nothing };
    match list.get(at) {
        Some(item) => VersionListElement::VersionToken(item),
        None if at == list.len() && !rest.is_empty() => VersionListElement::List(rest),
        None => VersionListElement::Nothing,
    }
}

fn list_beside_nothing(lists: &[Vec<VersionToken>]) -> Ordering {
    let mut orders = lists.iter().flatten().map(VersionToken::beside_nothing);
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Compares a nested list with the item that another version has at its place.
fn list_beside_item(rest: &[Vec<VersionToken>], item: &VersionToken) -> Ordering {
    match item {
        // `1-1` is before `1.0.1`.
        VersionToken::Number(_) => Ordering::Less,
        // `1-1` is after `1.x`, `1-alpha` before it.
        VersionToken::Word(word) => {
            let sides = list_beside_nothing(rest).cmp(&word.cmp(&Qualifier::Release));
            sides.then(Ordering::Greater)
        }
    }
}

fn compare(mut a: &[Vec<VersionToken>], mut b: &[Vec<VersionToken>]) -> Ordering {
    use VersionListElement::{List, Nothing, VersionToken};
    let mut at = 0;
    loop {
        let order = match (slot(a, at), slot(b, at)) {
            (Nothing, Nothing) => return Ordering::Equal,
            (List(rest_a), List(rest_b)) => {
                (a, b, at) = (rest_a, rest_b, 0);
                continue;
            }
            (VersionToken(a), VersionToken(b)) => a.cmp(b),
            (VersionToken(item), Nothing) => item.beside_nothing(),
            (Nothing, VersionToken(item)) => item.beside_nothing().reverse(),
            (List(rest), Nothing) => list_beside_nothing(rest),
            (Nothing, List(rest)) => list_beside_nothing(rest).reverse(),
            (List(rest), VersionToken(item)) => list_beside_item(rest, item),
            (VersionToken(item), List(rest)) => list_beside_item(rest, item).reverse(),
        };
        if order.is_ne() {
            return order;
        }
        at += 1;
    }
}

impl Version {
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}
