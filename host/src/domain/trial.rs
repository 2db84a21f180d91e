//! A version on trial, beside the one that is live: for whom it answers, and
//! how that ended.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::id::WorkspaceId;
use super::time::Timestamp;
use super::words::words;

words! {
    /// What a version on trial does.
    Mode {
        /// It answers for some workspaces.
        Canary = "canary",
        /// It answers copies of requests, and nobody hears it.
        Shadow = "shadow",
    }
}

words! {
    /// How a trial stands.
    TrialState {
        /// It goes on.
        Running = "running",
        /// The version is live.
        Promoted = "promoted",
        /// An operator ended it, or let another version answer.
        Stopped = "stopped",
        /// A node ended it, since the version was worse than the live one.
        RolledBack = "rolled_back",
    }
}

/// A share of workspaces, in steps of a hundredth of a percent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, JsonSchema)]
#[schemars(transparent)]
pub struct Share(#[schemars(with = "f64", range(min = 0, max = 100))] u16);

impl Share {
    /// All of them, in hundredths of a percent.
    const ALL: u16 = 10_000;

    /// From 0 to 100 percent, to two decimals.
    #[must_use]
    pub fn of_percent(percent: f64) -> Option<Self> {
        if !(0.0..=100.0).contains(&percent) {
            return None;
        }
        let hundredths = percent * 100.0;
        let exact = (hundredths - hundredths.round()).abs() < 1e-6;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 10,000")]
        exact.then(|| Self(hundredths.round() as u16))
    }

    /// As it is stored; what is too large is all.
    #[must_use]
    pub fn of_hundredths(hundredths: i64) -> Self {
        Self(u16::try_from(hundredths).unwrap_or(Self::ALL).min(Self::ALL))
    }

    /// As it is stored.
    #[must_use]
    pub fn hundredths(self) -> i64 {
        self.0.into()
    }

    /// In percent.
    #[must_use]
    pub fn percent(self) -> f64 {
        f64::from(self.0) / 100.0
    }

    /// Whether a workspace is in: for one area always the same ones, on every
    /// node, and a larger share has all of a smaller one. Each area begins
    /// with others.
    fn has(self, area: &str, workspace: WorkspaceId) -> bool {
        let mut hash = Sha256::new_with_prefix(b"assurance canary\0");
        hash.update(area.as_bytes());
        hash.update(workspace.0.as_bytes());
        let hash = hash.finalize();
        let number = hash[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        number % u64::from(Self::ALL) < u64::from(self.0)
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.percent())
    }
}

/// A version on trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Trial {
    /// The area.
    pub area: String,
    /// The version.
    pub digest: String,
    /// What it does.
    pub mode: Mode,
    /// Of the workspaces, or of a shadow's requests, in percent.
    pub share: Share,
    /// These are in whatever the share.
    pub workspaces: BTreeSet<WorkspaceId>,
    /// How it stands.
    pub state: TrialState,
    /// Why it was begun; once it has ended, why it has.
    pub why: Option<String>,
    /// Grows with every change.
    pub revision: i64,
    /// When it began.
    pub begun_at: Timestamp,
    /// Who began it.
    pub begun_by: String,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

impl Trial {
    /// Whether the version on trial answers for a workspace.
    #[must_use]
    pub fn covers(&self, workspace: WorkspaceId) -> bool {
        self.mode == Mode::Canary
            && (self.workspaces.contains(&workspace) || self.share.has(&self.area, workspace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspaces() -> impl Iterator<Item = WorkspaceId> {
        (0..10_000_u128).map(|n| WorkspaceId(uuid::Uuid::from_u128(n << 64 | 0xfeed)))
    }

    fn share(percent: f64) -> Share {
        Share::of_percent(percent).unwrap()
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
        let least = (1..=10_000).find(|n| Share(*n).has("notes", id)).unwrap();
        assert_eq!(least, 8389);
    }

    #[test]
    fn a_share_has_two_decimals_and_is_no_more_than_all() {
        assert_eq!(share(0.01).hundredths(), 1);
        assert_eq!(share(12.5).percent(), 12.5);
        for wrong in [-1.0, 100.01, 0.005, f64::NAN] {
            assert_eq!(Share::of_percent(wrong), None, "{wrong}");
        }
    }
}
