//! Decides whether an advisory affects a version, by the algorithm of the OSV schema: `versions`
//! first, then the events of each range in order.

use area_sdk::prelude::*;

use super::{Affected, Range, RangeEvent, RangeType};
use crate::ecosystem::{self, Package};
use crate::versions::{Scheme, Version};

/// Maximum number of events of an OSV range that is evaluated. Ranges of real advisories have about
/// 20.
const MAX_EVENTS: usize = 1_000;

/// Reason why an advisory's `affected` entry affects a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AffectedReason {
    /// The version is in a range of the advisory.
    Range,
    /// The advisory lists the version.
    Listed,
}

/// Reason why an `affected` entry of an advisory could not be compared with a component. Of several
/// reasons, the last in this order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ComparisonObstacle {
    /// The entry has neither ranges nor `versions`, so nothing says which versions are affected.
    NoRanges,
    /// The component has no version.
    NoVersion,
    /// The range consists of commits (type `GIT`).
    Commits,
    /// The advisory entry is for a Go module whose path differs from the component's only in case.
    OtherCase,
    /// The range has more than [`MAX_EVENTS`] events.
    TooManyEvents,
    /// The version order of the ecosystem is unknown.
    NoOrder,
    /// The component's version, or a version in the range, is invalid in the ecosystem.
    Unreadable,
}

/// Result of comparing an `affected` entry of an advisory with a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Reason why the component is affected; `None` if it is not, as far as that can be decided.
    pub(crate) ground: Option<AffectedReason>,
    /// Whether the listed `versions`, or at least one range, could be compared with the component.
    pub(crate) answered: bool,
    /// The reason why a range, or an entry without ranges, could not be compared with the component
    /// (of several, the one that takes precedence); `None` if all could.
    pub(crate) obstacle: Option<ComparisonObstacle>,
}

impl Verdict {
    /// Returns the verdict for a component that is a Go module whose path differs from the
    /// advisory's in case: not affected. If this verdict says affected, that becomes an obstacle.
    pub(crate) fn of_other_case(self) -> Self {
        let obstacle = (self.ground.is_some()).then_some(ComparisonObstacle::OtherCase);
        Self { ground: None, answered: true, obstacle }
    }
}

/// Version of a component; parsed, if the order of its ecosystem is known.
#[derive(Clone, Debug)]
struct CandidateVersion<'a> {
    text: &'a str,
    scheme: Option<Scheme>,
    version: Option<Version>,
    /// The version without its local part; `None` if it has none. See [`Scheme::parse_public`].
    public: Option<Version>,
}

/// Compares an advisory's `affected` entry with the version of a package. The caller has checked
/// that the entry is for this package.
pub(crate) fn evaluate(affected: &Affected, package: &Package) -> Verdict {
    if affected.ranges.is_empty() && affected.versions.is_empty() {
        let obstacle = Some(ComparisonObstacle::NoRanges);
        return Verdict { obstacle, ..Verdict::default() };
    }
    let Some(text) = package.comparable_version() else { return without_version(affected) };
    let scheme = ecosystem::scheme(&package.ecosystem);
    let version = scheme.and_then(|scheme| scheme.parse(&text));
    let public = scheme.and_then(|scheme| scheme.parse_public(&text));
    let candidate = CandidateVersion { text: &text, scheme, version, public };
    if affected.versions.iter().any(|listed| candidate.is(listed)) {
        return Verdict { ground: Some(AffectedReason::Listed), answered: true, obstacle: None };
    }
    let mut verdict = Verdict { answered: !affected.versions.is_empty(), ..Verdict::default() };
    for range in &affected.ranges {
        match candidate.lies_in(range) {
            Ok(inside) => {
                verdict.answered = true;
                verdict.ground = verdict.ground.or(inside.then_some(AffectedReason::Range));
            }
            Err(obstacle) => verdict.obstacle = verdict.obstacle.max(Some(obstacle)),
        }
    }
    verdict
}

/// Returns the verdict on a component without a version. Only a range that contains all versions
/// affects the component.
fn without_version(affected: &Affected) -> Verdict {
    if affected.ranges.iter().any(Range::has_all_versions) {
        return Verdict { ground: Some(AffectedReason::Range), answered: true, obstacle: None };
    }
    Verdict { obstacle: Some(ComparisonObstacle::NoVersion), ..Verdict::default() }
}

impl Range {
    /// Whether the OSV range contains all versions: it begins before the first version and has no
    /// end. False for ranges of commits.
    fn has_all_versions(&self) -> bool {
        let from_zero =
            |event: &RangeEvent| matches!(event, RangeEvent::Introduced(at) if at == "0");
        let ends = |event: &RangeEvent| match event {
            RangeEvent::Introduced(_) => false,
            RangeEvent::Fixed(_) | RangeEvent::LastAffected(_) => true,
            RangeEvent::Limit(at) => at != "*",
        };
        self.r#type != RangeType::Git
            && self.events.iter().any(from_zero)
            && !self.events.iter().any(ends)
    }
}

impl CandidateVersion<'_> {
    fn is(&self, listed: &str) -> bool {
        if listed == self.text {
            return true;
        }
        let (Some(scheme), Some(version)) = (self.scheme, &self.version) else { return false };
        let listed_version = scheme.parse(listed);
        let is_equal = listed_version.is_some()
            && (listed_version.as_ref() == Some(version) || listed_version == self.public);
        is_equal && scheme.is_same_build(listed, self.text)
    }

    fn lies_in(&self, range: &Range) -> Result<bool, ComparisonObstacle> {
        if range.has_all_versions() {
            return Ok(true);
        }
        if range.events.len() > MAX_EVENTS {
            return Err(ComparisonObstacle::TooManyEvents);
        }
        let scheme = match range.r#type {
            RangeType::Git => return Err(ComparisonObstacle::Commits),
            RangeType::Semver if self.scheme == Some(Scheme::Bitnami) => Scheme::Bitnami,
            RangeType::Semver => Scheme::Semantic,
            RangeType::Ecosystem => self.scheme.ok_or(ComparisonObstacle::NoOrder)?,
        };
        let read = (Some(scheme) != self.scheme).then(|| scheme.parse(self.text));
        let version = read.as_ref().unwrap_or(&self.version).as_ref();
        let version = version.ok_or(ComparisonObstacle::Unreadable)?;
        let marks = read_marks(range, scheme).ok_or(ComparisonObstacle::Unreadable)?;
        Ok(before_limits(&marks, version) && is_inside(&marks, version))
    }
}

/// Position of an OSV range's event in the order of versions.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RangeEventVersion {
    /// Before all versions; the event is `introduced` with `0`.
    Beginning,
    At(Version),
    /// After all versions; the event is `limit` with `*`.
    End,
}

/// An event of an OSV range, after its position in the order of versions.
type PlacedRangeEvent<'a> = (RangeEventVersion, &'a RangeEvent);

/// Parses the versions of the events of an OSV range; `None` if one of them is invalid.
fn read_marks(range: &Range, scheme: Scheme) -> Option<Vec<PlacedRangeEvent<'_>>> {
    let mut marks = Vec::with_capacity(range.events.len());
    for event in &range.events {
        let at = match event {
            RangeEvent::Introduced(text) if text == "0" => RangeEventVersion::Beginning,
            RangeEvent::Limit(text) if text == "*" => RangeEventVersion::End,
            RangeEvent::LastAffected(text) => RangeEventVersion::At(scheme.parse_last(text)?),
            RangeEvent::Introduced(text) | RangeEvent::Fixed(text) | RangeEvent::Limit(text) => {
                RangeEventVersion::At(scheme.parse(text)?)
            }
        };
        marks.push((at, event));
    }
    Some(marks)
}

/// Whether the version is below one of the `limit` events of an OSV range. True if the range has
/// none.
fn before_limits(marks: &[PlacedRangeEvent<'_>], version: &Version) -> bool {
    let limits = marks.iter().filter(|(_, event)| matches!(event, RangeEvent::Limit(_)));
    let mut limits = limits.peekable();
    limits.peek().is_none() || limits.any(|(limit, _)| !reached(limit, version))
}

fn reached(bound: &RangeEventVersion, version: &Version) -> bool {
    match bound {
        RangeEventVersion::Beginning => true,
        RangeEventVersion::At(at) => version >= at,
        RangeEventVersion::End => false,
    }
}

/// Whether the last event of the range at or before the version begins an affected interval. Of
/// events at the same version, the last one in the document counts.
fn is_inside(marks: &[PlacedRangeEvent<'_>], version: &Version) -> bool {
    let reached = marks.iter().filter(|(at, event)| match event {
        RangeEvent::Introduced(_) | RangeEvent::Fixed(_) => reached(at, version),
        RangeEvent::LastAffected(_) => {
            matches!(at, RangeEventVersion::At(last) if version > last)
        }
        RangeEvent::Limit(_) => false,
    });
    let last = reached.max_by(|(a, _), (b, _)| a.cmp(b));
    last.is_some_and(|(_, event)| matches!(event, RangeEvent::Introduced(_)))
}
