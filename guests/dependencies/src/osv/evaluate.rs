//! Is this version affected? The evaluation algorithm of the OSV schema:
//! explicit versions first, then each range by its events in order.

use super::{Affected, Range, RangeEvent, RangeType};
use crate::ecosystem::{self, Package};
use crate::versions::{Scheme, Version};

/// Why a version is affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ground {
    /// It lies in a range.
    Range,
    /// It is listed.
    Listed,
}

/// What an entry of an advisory says of a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Nothing where it is not affected, as far as can be told.
    pub(crate) ground: Option<Ground>,
    /// There are ranges that could not be evaluated: of commits, or of an
    /// ecosystem whose order is not known.
    pub(crate) unevaluated: bool,
}

/// A version, read by its ecosystem's order where there is one.
#[derive(Clone, Debug)]
struct Candidate<'a> {
    text: &'a str,
    scheme: Option<Scheme>,
    version: Option<Version>,
}

/// Whether the package's version is among the affected ones. That the package
/// itself is the affected one has been seen before.
pub(crate) fn evaluate(affected: &Affected, package: &Package) -> Verdict {
    let Some(text) = package.version.as_deref() else { return Verdict::default() };
    let scheme = ecosystem::scheme(&package.ecosystem);
    let version = scheme.and_then(|scheme| scheme.parse(text));
    let candidate = Candidate { text, scheme, version };
    if affected.versions.iter().any(|listed| candidate.is(listed)) {
        return Verdict { ground: Some(Ground::Listed), unevaluated: false };
    }
    let mut verdict = Verdict::default();
    for range in &affected.ranges {
        match candidate.lies_in(range) {
            Some(true) => verdict.ground = Some(Ground::Range),
            Some(false) => {}
            None => verdict.unevaluated = true,
        }
    }
    verdict
}

impl Candidate<'_> {
    fn is(&self, listed: &str) -> bool {
        if listed == self.text {
            return true;
        }
        let listed = self.scheme.and_then(|scheme| scheme.parse(listed));
        self.version.is_some() && listed == self.version
    }

    /// Nothing where that cannot be told.
    fn lies_in(&self, range: &Range) -> Option<bool> {
        let scheme = match range.r#type {
            RangeType::Git => return None,
            RangeType::Semver => Scheme::Semantic,
            RangeType::Ecosystem => self.scheme?,
        };
        let read = (Some(scheme) != self.scheme).then(|| scheme.parse(self.text));
        let version = read.as_ref().unwrap_or(&self.version).as_ref()?;
        let mut marks = read_marks(range, scheme)?;
        marks.sort_by(|a, b| a.at.cmp(&b.at));
        Some(before_limits(&marks, version) && is_inside(&marks, version))
    }
}

/// An event whose version was read.
#[derive(Debug)]
struct Mark {
    at: Bound,
    kind: Kind,
}

/// Where an event lies.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bound {
    /// Before every version.
    Beginning,
    At(Version),
    /// After every version.
    End,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Introduced,
    Fixed,
    LastAffected,
    Limit,
}

/// Nothing where an event names what is no version.
fn read_marks(range: &Range, scheme: Scheme) -> Option<Vec<Mark>> {
    let read = |event: &RangeEvent| {
        let (kind, text) = match event {
            RangeEvent::Introduced(text) => (Kind::Introduced, text),
            RangeEvent::Fixed(text) => (Kind::Fixed, text),
            RangeEvent::LastAffected(text) => (Kind::LastAffected, text),
            RangeEvent::Limit(text) => (Kind::Limit, text),
        };
        let at = match (&kind, text.as_str()) {
            (Kind::Introduced, "0") => Bound::Beginning,
            (Kind::Limit, "*") => Bound::End,
            (_, text) => Bound::At(scheme.parse(text)?),
        };
        Some(Mark { at, kind })
    };
    range.events.iter().map(read).collect()
}

/// Without limits there is one that is never reached.
fn before_limits(marks: &[Mark], version: &Version) -> bool {
    let mut limits = marks.iter().filter(|mark| mark.kind == Kind::Limit).peekable();
    limits.peek().is_none() || limits.any(|limit| !reached(&limit.at, version))
}

fn reached(bound: &Bound, version: &Version) -> bool {
    match bound {
        Bound::Beginning => true,
        Bound::At(at) => version >= at,
        Bound::End => false,
    }
}

fn is_inside(marks: &[Mark], version: &Version) -> bool {
    marks.iter().fold(false, |inside, mark| match mark.kind {
        Kind::Introduced if reached(&mark.at, version) => true,
        Kind::Fixed if reached(&mark.at, version) => false,
        Kind::LastAffected if matches!(&mark.at, Bound::At(last) if version > last) => false,
        _ => inside,
    })
}
