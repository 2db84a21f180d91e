//! Trials: a version that serves some workspaces or answers copies of requests,
//! next to the live version.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::id::WorkspaceId;
use super::time::Timestamp;
use super::words::inline_words;

inline_words! {
    /// Whether a version on trial is a canary or a shadow.
    pub enum TrialMode, "a kind of trial" {
        /// The version serves some of the workspaces.
        Canary = "canary",
        /// The version receives copies of requests; its responses are
        /// discarded.
        Shadow = "shadow",
    }
}

inline_words! {
    /// State of a trial.
    pub enum TrialState, "a trial's state" {
        /// The trial is running.
        Running = "running",
        /// The version became live.
        Promoted = "promoted",
        /// An operator ended the trial, or activated another version.
        Stopped = "stopped",
        /// A node ended the trial because the version was worse than the live
        /// one.
        RolledBack = "rolled_back",
    }
}

/// Share of the workspaces (canary) or of the requests (shadow) that a trial
/// includes, in steps of a hundredth of a percent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, JsonSchema)]
#[schemars(transparent)]
pub struct TrialShare(#[schemars(with = "f64", range(min = 0, max = 100))] u16);

impl TrialShare {
    /// The share of 100 %, in hundredths of a percent.
    const ALL: u16 = 10_000;

    /// Creates a share from a percentage, 0 to 100; `None` if it is out of
    /// range or has more than two decimals.
    #[must_use]
    pub fn of_percent(percent: f64) -> Option<Self> {
        if !(0.0..=100.0).contains(&percent) {
            return None;
        }
        let hundredths = percent * 100.0;
        let exact = (hundredths - hundredths.round()).abs() < 1e-6;
        exact.then(|| Self(hundredths.round() as u16))
    }

    /// Creates a share from hundredths of a percent; values over 10,000 count
    /// as 100 %.
    #[must_use]
    pub fn of_hundredths(hundredths: i64) -> Self {
        Self(u16::try_from(hundredths).unwrap_or(Self::ALL).min(Self::ALL))
    }

    /// Returns the share in hundredths of a percent, the stored form.
    #[must_use]
    pub fn hundredths(self) -> i64 {
        self.0.into()
    }

    /// Returns the share in percent.
    #[must_use]
    pub fn percent(self) -> f64 {
        f64::from(self.0) / 100.0
    }

    /// Returns whether the share includes a workspace. For one area the result
    /// is the same on every node, and a larger share includes all workspaces of
    /// a smaller one. The order of workspaces differs by area.
    fn has(self, area: &str, workspace: WorkspaceId) -> bool {
        let mut hash = Sha256::new_with_prefix(b"assurance canary\0");
        hash.update(area.as_bytes());
        hash.update(workspace.0.as_bytes());
        let hash = hash.finalize();
        let number = hash[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        number % u64::from(Self::ALL) < u64::from(self.0)
    }
}

impl Serialize for TrialShare {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.percent())
    }
}

/// A trial of a version next to the live version of its area.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Trial {
    /// Name of the area whose version is on trial.
    pub area: String,
    /// Digest of the version on trial.
    pub digest: String,
    /// Whether the version is a canary or a shadow.
    pub mode: TrialMode,
    /// Share of the workspaces that a canary serves, or of the requests that a
    /// shadow receives.
    pub share: TrialShare,
    /// Workspaces that the trial includes whatever the share.
    pub workspaces: BTreeSet<WorkspaceId>,
    /// State of the trial.
    pub state: TrialState,
    /// Reason for the trial; after its end, the reason for the end.
    pub why: Option<String>,
    /// Revision of the trial; grows with every change.
    pub revision: i64,
    /// Time at which the trial began.
    pub begun_at: Timestamp,
    /// Operator who began the trial.
    pub begun_by: String,
    /// Time at which the trial ended; `None` while it runs.
    pub ended_at: Option<Timestamp>,
}

impl Trial {
    /// Returns whether the version on trial serves a workspace.
    #[must_use]
    pub fn covers(&self, workspace: WorkspaceId) -> bool {
        self.mode == TrialMode::Canary
            && (self.workspaces.contains(&workspace) || self.share.has(&self.area, workspace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspaces() -> impl Iterator<Item = WorkspaceId> {
        (0..10_000_u128).map(|n| WorkspaceId(uuid::Uuid::from_u128(n << 64 | 0xfeed)))
    }

    fn share(percent: f64) -> TrialShare {
        TrialShare::of_percent(percent).unwrap()
    }

    #[test]
    fn a_share_is_about_as_large_as_it_says() {
        for (percent, expected) in [(0.0, 0..=0), (5.0, 430..=570), (100.0, 10_000..=10_000)] {
            let count = workspaces().filter(|id| share(percent).has("notes", *id)).count();
            assert!(expected.contains(&count), "{percent} %: {count}");
        }
    }

    #[test]
    fn who_is_in_stays_in_when_the_share_grows() {
        let small: Vec<_> = workspaces().filter(|id| share(5.0).has("notes", *id)).collect();
        assert!(small.iter().all(|id| share(25.0).has("notes", *id)));
        let elsewhere = small.iter().filter(|id| share(5.0).has("support", **id)).count();
        assert!(elsewhere < small.len() / 5, "each area begins with others: {elsewhere}");
    }

    #[test]
    fn the_choice_is_the_same_in_every_version_of_the_host() {
        let id = WorkspaceId(uuid::Uuid::from_u128(1));
        let least = (1..=10_000).find(|n| TrialShare(*n).has("notes", id)).unwrap();
        assert_eq!(least, 8389);
    }

    #[test]
    fn a_share_has_two_decimals_and_is_no_more_than_all() {
        assert_eq!(share(0.01).hundredths(), 1);
        assert_eq!(share(12.5).percent(), 12.5);
        for wrong in [-1.0, 100.01, 0.005, f64::NAN] {
            assert_eq!(TrialShare::of_percent(wrong), None, "{wrong}");
        }
    }
}
