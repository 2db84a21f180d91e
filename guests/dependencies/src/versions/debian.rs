//! Versions of Debian (deb-version(7)): epoch, upstream version and revision. Upstream version and
//! revision are compared as alternating texts and numbers; `~` sorts before everything, even the
//! end.
//!
//! The crate `debversion` (0.5.5) gives the same order, but takes six times as long (2.9 instead of
//! 0.5 µs to parse and compare two versions), adds a regex engine to the component, and refuses
//! epochs above 2^32.

use std::cmp::Ordering;

use super::{Number, compare_digits, is_number};

#[derive(Clone, Debug)]
pub(super) struct Version {
    epoch: Number,
    upstream: String,
    revision: String,
}

pub(super) fn parse(text: &str) -> Option<Version> {
    let (epoch, rest) = text.split_once(':').unwrap_or(("0", text));
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
    let graphic = rest.chars().all(|c| c.is_ascii_graphic());
    (is_number(epoch) && !upstream.is_empty() && graphic).then(|| Version {
        epoch: Number::new(epoch),
        upstream: upstream.to_owned(),
        revision: revision.to_owned(),
    })
}

/// Returns the rank of a character in Debian's order of versions; `None` is the end of the text.
fn rank(c: Option<u8>) -> u16 {
    match c {
        Some(b'~') => 0,
        None => 1,
        Some(c) if c.is_ascii_alphabetic() => 2 + u16::from(c),
        Some(c) => 300 + u16::from(c),
    }
}

/// Splits a text before its first digit.
fn split_text(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len()))
}

fn split_number(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn compare_text(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    (0..a.len().max(b.len()))
        .map(|at| rank(a.get(at).copied()).cmp(&rank(b.get(at).copied())))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Compares the upstream versions, or the revisions, of two Debian versions, like the function
/// `verrevcmp` of dpkg.
fn compare_parts(mut a: &str, mut b: &str) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let ((text_a, rest_a), (text_b, rest_b)) = (split_text(a), split_text(b));
        let ((number_a, rest_a), (number_b, rest_b)) = (split_number(rest_a), split_number(rest_b));
        let order = compare_text(text_a, text_b).then_with(|| compare_digits(number_a, number_b));
        if order.is_ne() {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
    Ordering::Equal
}

impl Version {
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        self.epoch
            .cmp(&other.epoch)
            .then_with(|| compare_parts(&self.upstream, &other.upstream))
            .then_with(|| compare_parts(&self.revision, &other.revision))
    }
}
