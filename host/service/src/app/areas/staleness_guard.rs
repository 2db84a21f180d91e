//! Blocks requests while this node could not read the live versions for `areas.max_stale_ms`, and
//! requests to areas whose running version was withdrawn.
//!
//! Checked at every request without locks: one atomic load for each condition.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

/// Reason why this node returns 503 for an area.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ServingBlocked {
    /// This node could not read the live versions for longer than `areas.max_stale_ms`. It returns
    /// 503 for all areas.
    #[error("this node cannot read which versions are live")]
    Unsure,
    /// The version that runs on this node was withdrawn, and the new live version does not load.
    #[error("the version that runs on this node was withdrawn, and its successor does not load")]
    Withdrawn,
    /// This node could not load the live version of the requested area, or of an area that may
    /// have the requested path.
    #[error("a live version is not loaded on this node; /health/ready says why")]
    NotLoaded,
}

/// Blocks requests if this node has not read the live versions recently enough, or if the running
/// version of their area was withdrawn.
#[derive(Debug)]
pub(super) struct StalenessGuard {
    born: Instant,
    max_stale: Duration,
    /// Time at which the last successful read of the live versions was sent, in milliseconds since
    /// `born`.
    read_ms: AtomicU64,
    withdrawn: ArcSwap<BTreeSet<String>>,
}

impl StalenessGuard {
    pub(super) fn new(max_stale: Duration) -> Self {
        let withdrawn = ArcSwap::default();
        Self { born: Instant::now(), max_stale, read_ms: AtomicU64::new(0), withdrawn }
    }

    /// Records that a read of the live versions succeeded; `sent_at` is when the query was sent.
    pub(super) fn note_read(&self, sent_at: Instant) {
        let since = sent_at.saturating_duration_since(self.born).as_millis();
        self.read_ms.fetch_max(u64::try_from(since).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns whether the live versions were read recently enough to serve.
    pub(super) fn is_sure(&self) -> bool {
        let read = Duration::from_millis(self.read_ms.load(Ordering::Relaxed));
        self.born.elapsed().saturating_sub(read) <= self.max_stale
    }

    /// Records whether the running version of an area was withdrawn.
    pub(super) fn set_withdrawn(&self, area: &str, withdrawn: bool) {
        self.withdrawn.rcu(|areas| {
            let mut areas = BTreeSet::clone(areas);
            if withdrawn {
                areas.insert(area.to_owned());
            } else {
                areas.remove(area);
            }
            areas
        });
    }

    /// Unblocks the areas that were blocked because of a withdrawn version, and of which
    /// `runs_live` returns true.
    pub(super) fn unblock(&self, runs_live: impl Fn(&str) -> bool) {
        for area in self.withdrawn.load().iter().filter(|area| runs_live(area)) {
            self.set_withdrawn(area, false);
        }
    }

    pub(super) fn admit(&self, area: &str) -> Result<(), ServingBlocked> {
        if !self.is_sure() {
            return Err(ServingBlocked::Unsure);
        }
        if self.withdrawn.load().contains(area) { Err(ServingBlocked::Withdrawn) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_is_too_old_does_not_count() {
        let guard = StalenessGuard::new(Duration::from_secs(60));
        assert_eq!(guard.admit("notes"), Ok(()), "a process has read when it starts");
        let strict = StalenessGuard::new(Duration::ZERO);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(strict.admit("notes"), Err(ServingBlocked::Unsure));
        let later = Instant::now() + Duration::from_secs(60);
        strict.note_read(later);
        assert_eq!(strict.admit("notes"), Ok(()));
        strict.note_read(strict.born);
        assert_eq!(strict.admit("notes"), Ok(()), "an older read changes nothing");
    }

    #[test]
    fn a_withdrawn_version_closes_its_area_only() {
        let guard = StalenessGuard::new(Duration::from_secs(60));
        guard.set_withdrawn("notes", true);
        guard.set_withdrawn("notes", true);
        assert_eq!(guard.admit("notes"), Err(ServingBlocked::Withdrawn));
        assert_eq!(guard.admit("support"), Ok(()));
        guard.set_withdrawn("notes", false);
        assert_eq!(guard.admit("notes"), Ok(()));
    }
}
