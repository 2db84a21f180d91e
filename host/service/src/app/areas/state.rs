//! State of one area: the database rows and what runs on this node. Input of
//! `plan` and `node_plan`.

use std::collections::BTreeMap;

use super::error::AreaActionError;
use crate::registry::LostDependency;
use assurance_core::domain::deployment::LivePointer;
use assurance_core::domain::time::Timestamp;
use assurance_core::domain::trial::{Trial, TrialMode, TrialState};

/// The database rows of one area: the state that every node should reach.
#[derive(Clone, Debug, Default)]
pub(super) struct DesiredArea {
    /// The area's row of `live_areas`; `None` if the area was never live.
    pub(super) pointer: Option<LivePointer>,
    /// The area's row of `area_trials`: the running trial, or the last one.
    pub(super) trial: Option<Trial>,
}

/// Rows of every area that has some, by the area's name.
pub(super) type DesiredAreas = BTreeMap<String, DesiredArea>;

/// Name of an area, with the revisions of the row of its live version and of its
/// running trial; 0 without one.
pub(super) type AreaRevisions = (String, i64, i64);

/// State of one area on this node: its version, its trial, and recent load
/// failures.
#[derive(Clone, Debug, Default)]
pub(super) struct RunningArea {
    /// Digest of the area's version in this node's registry; `None` if there is
    /// none.
    pub(super) digest: Option<String>,
    /// Whether the code of the area's version is loaded on this node; false if
    /// only its manifest is.
    pub(super) loaded: bool,
    /// Trial of the area that runs on this node.
    pub(super) trial: Option<Trial>,
    /// Time at which the version's file was written; `None` if operators
    /// deployed the version.
    pub(super) file_written_at: Option<Timestamp>,
    /// Digest of the live version if it failed to load on this node and is not
    /// due to be tried again.
    pub(super) failed: Option<String>,
    /// Digest of the version on trial if it failed to load on this node and is
    /// not due to be tried again.
    pub(super) failed_trial: Option<String>,
}

/// State of one area, in the database and on this node, when an operator's
/// decision is planned.
#[derive(Clone, Debug)]
pub(super) struct DesiredAndRunningArea {
    pub(super) area: String,
    /// Time at which the state of the area was read.
    pub(super) now: Timestamp,
    pub(super) desired: DesiredArea,
    pub(super) running: RunningArea,
    /// Access that other live areas would lose if this area were removed.
    pub(super) dependents: Vec<LostDependency>,
}

impl DesiredArea {
    /// Returns the digest of the area's live version; `None` if the area is not
    /// live.
    pub(super) fn live(&self) -> Option<&str> {
        self.pointer.as_ref()?.digest.as_deref()
    }

    /// Returns the digest of the version that was live before the one in the area's row.
    pub(super) fn previous(&self) -> Option<&str> {
        self.pointer.as_ref()?.previous.as_deref()
    }

    /// Returns the digest of the version in the area's row, if the node serves a newer file
    /// instead of it.
    pub(super) fn overridden(&self, running: &RunningArea) -> Option<&str> {
        let file = running.newer_file(self.pointer.as_ref())?;
        self.live().filter(|live| *live != file)
    }

    /// Returns the digest of the version that a rollback at the node makes live.
    pub(super) fn rollback_target(&self, running: &RunningArea) -> Option<&str> {
        self.overridden(running).or(self.previous())
    }

    /// Returns the area's trial if it is running.
    pub(super) fn running_trial(&self) -> Option<&Trial> {
        self.trial.as_ref().filter(|trial| trial.state == TrialState::Running)
    }

    /// Returns the area's trial if it is running and a canary.
    pub(super) fn canary(&self) -> Option<&Trial> {
        self.running_trial().filter(|trial| trial.mode == TrialMode::Canary)
    }
}

impl RunningArea {
    /// Returns whether this node serves the area's requests with the version of
    /// this digest.
    pub(super) fn serves(&self, digest: &str) -> bool {
        self.loaded && self.digest.as_deref() == Some(digest)
    }

    /// Returns the digest of the version that this node serves from a file; `None` if there is no
    /// file, or the area's row was changed after the file.
    pub(super) fn newer_file(&self, row: Option<&LivePointer>) -> Option<&str> {
        let written_at = self.file_written_at?;
        let is_newer = row.is_none_or(|row| written_at > row.changed_at);
        self.digest.as_deref().filter(|_| is_newer)
    }
}

impl DesiredAndRunningArea {
    /// Returns the error for a decision that failed because the area changed at
    /// the same time.
    pub(super) fn overtaken(&self) -> AreaActionError {
        AreaActionError::Overtaken(self.area.clone())
    }
}
