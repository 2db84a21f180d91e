//! State of one area: the database rows and what runs on this node. Input of
//! `plan` and `node_plan`.

use std::collections::BTreeMap;

use super::error::InstallError;
use crate::registry::LostDependency;
use assurance_core::domain::deployment::LivePointer;
use assurance_core::domain::time::Timestamp;
use assurance_core::domain::trial::{Trial, TrialMode, TrialState};

/// Rows of an area: the state that every node should reach.
#[derive(Clone, Debug, Default)]
pub(super) struct DesiredArea {
    /// Row of `live_areas`; `None` if the area was never live.
    pub(super) pointer: Option<LivePointer>,
    /// Row of `area_trials`: the running trial, or the last one.
    pub(super) trial: Option<Trial>,
}

/// Every area that has a row, by name.
pub(super) type DesiredAreas = BTreeMap<String, DesiredArea>;

/// State of an area on this node.
#[derive(Clone, Debug, Default)]
pub(super) struct RunningArea {
    /// Digest of the version in the registry.
    pub(super) digest: Option<String>,
    /// Whether that version's code is loaded; false if only its manifest is.
    pub(super) loaded: bool,
    /// Trial that runs on this node.
    pub(super) trial: Option<Trial>,
    /// Time at which the version's file was written; `None` if operators
    /// deployed the version.
    pub(super) file_written_at: Option<Timestamp>,
    /// Digest of the live version if it failed to load on this node within the
    /// last 10 s.
    pub(super) failed: Option<String>,
    /// Digest of the version on trial if it failed to load on this node within
    /// the last 10 s.
    pub(super) failed_trial: Option<String>,
}

/// State of an area when an operator's decision is planned.
#[derive(Clone, Debug)]
pub(super) struct AreaState {
    pub(super) area: String,
    /// Time at which the state was read.
    pub(super) now: Timestamp,
    pub(super) desired: DesiredArea,
    pub(super) running: RunningArea,
    /// Access that other live areas would lose if this area were removed.
    pub(super) dependents: Vec<LostDependency>,
}

impl DesiredArea {
    /// Returns the digest of the live version.
    pub(super) fn live(&self) -> Option<&str> {
        self.pointer.as_ref()?.digest.as_deref()
    }

    /// Returns the digest of the version that a rollback makes live.
    pub(super) fn previous(&self) -> Option<&str> {
        self.pointer.as_ref()?.previous.as_deref()
    }

    /// Returns the trial if it is running.
    pub(super) fn running_trial(&self) -> Option<&Trial> {
        self.trial.as_ref().filter(|trial| trial.state == TrialState::Running)
    }

    /// Returns the trial if it is running and a canary.
    pub(super) fn canary(&self) -> Option<&Trial> {
        self.running_trial().filter(|trial| trial.mode == TrialMode::Canary)
    }
}

impl RunningArea {
    /// Returns whether this node serves requests with this version.
    pub(super) fn serves(&self, digest: &str) -> bool {
        self.loaded && self.digest.as_deref() == Some(digest)
    }
}

impl AreaState {
    /// Returns the error for a decision that failed because the area changed at
    /// the same time.
    pub(super) fn overtaken(&self) -> InstallError {
        InstallError::Overtaken { area: self.area.clone() }
    }
}
