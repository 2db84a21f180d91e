//! What this process may still answer with: nothing, once it could not learn
//! for too long which versions are live, and never a version that was
//! withdrawn.
//!
//! Asked at every request: no lock, one atomic load each.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

/// Why an area does not answer here for the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Closed {
    /// The database did not say for too long what is live.
    #[error("this node cannot learn which versions are live")]
    Unsure,
    /// What runs here was withdrawn, and what should run does not load.
    #[error("the version that runs on this node was withdrawn, and its successor does not load")]
    Withdrawn,
    /// A live version cannot be loaded here.
    #[error("a live version is not loaded on this node; /health/ready says why")]
    NotLoaded,
}

/// Which areas may answer, as this process last learned.
#[derive(Debug)]
pub(super) struct Fence {
    born: Instant,
    max_stale: Duration,
    /// When the question was asked that was answered last, in milliseconds
    /// since `born`.
    asked_ms: AtomicU64,
    withdrawn: ArcSwap<BTreeSet<String>>,
}

impl Fence {
    pub(super) fn new(max_stale: Duration) -> Self {
        let withdrawn = ArcSwap::default();
        Self { born: Instant::now(), max_stale, asked_ms: AtomicU64::new(0), withdrawn }
    }

    /// A question asked at that moment what is live was answered.
    pub(super) fn learned(&self, asked_at: Instant) {
        let since = asked_at.saturating_duration_since(self.born).as_millis();
        self.asked_ms.fetch_max(u64::try_from(since).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Whether this process knows what is live.
    pub(super) fn is_sure(&self) -> bool {
        let asked = Duration::from_millis(self.asked_ms.load(Ordering::Relaxed));
        self.born.elapsed().saturating_sub(asked) <= self.max_stale
    }

    /// Lets an area answer, or no longer.
    pub(super) fn set_withdrawn(&self, area: &str, withdrawn: bool) {
        self.withdrawn.rcu(|areas| {
            let mut areas = Arc::clone(areas);
            if areas.contains(area) != withdrawn {
                let areas = Arc::make_mut(&mut areas);
                if withdrawn {
                    areas.insert(area.to_owned())
                } else {
                    areas.remove(area)
                };
            }
            areas
        });
    }

    pub(super) fn admit(&self, area: &str) -> Result<(), Closed> {
        if !self.is_sure() {
            return Err(Closed::Unsure);
        }
        if self.withdrawn.load().contains(area) { Err(Closed::Withdrawn) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learned_too_long_ago_does_not_count() {
        let fence = Fence::new(Duration::from_secs(60));
        assert_eq!(fence.admit("notes"), Ok(()), "a fresh process has just looked");
        let impatient = Fence::new(Duration::ZERO);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(impatient.admit("notes"), Err(Closed::Unsure));
        let later = Instant::now() + Duration::from_secs(60);
        impatient.learned(later);
        assert_eq!(impatient.admit("notes"), Ok(()));
        impatient.learned(impatient.born);
        assert_eq!(impatient.admit("notes"), Ok(()), "an older answer takes nothing back");
    }

    #[test]
    fn a_withdrawn_version_closes_its_area_only() {
        let fence = Fence::new(Duration::from_secs(60));
        fence.set_withdrawn("notes", true);
        fence.set_withdrawn("notes", true);
        assert_eq!(fence.admit("notes"), Err(Closed::Withdrawn));
        assert_eq!(fence.admit("support"), Ok(()));
        fence.set_withdrawn("notes", false);
        assert_eq!(fence.admit("notes"), Ok(()));
    }
}
