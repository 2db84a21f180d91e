//! One area at one moment: what its rows name, and what of it runs on this
//! node. Plain data, on which `plan` and `node_plan` decide.

use std::collections::BTreeMap;

use super::error::InstallError;
use crate::registry::LostDependency;
use assurance_core::domain::deployment::LivePointer;
use assurance_core::domain::time::Timestamp;
use assurance_core::domain::trial::{Mode, Trial, TrialState};

/// The rows of an area: what every node is to run.
#[derive(Clone, Debug, Default)]
pub(super) struct DesiredArea {
    /// The row of `live_areas`.
    pub(super) pointer: Option<LivePointer>,
    /// The row of `area_trials`: the last trial, running or ended.
    pub(super) trial: Option<Trial>,
}

/// Every area that has a row, by name.
pub(super) type DesiredAreas = BTreeMap<String, DesiredArea>;

/// What this node runs of an area.
#[derive(Clone, Debug, Default)]
pub(super) struct RunningArea {
    /// Digest of the version in the registry.
    pub(super) digest: Option<String>,
    /// Whether that version's code is loaded, and not only its manifest.
    pub(super) loaded: bool,
    /// The trial that runs here.
    pub(super) trial: Option<Trial>,
    /// When the file was written that the version comes from; `None` if
    /// operators deployed it.
    pub(super) file_written_at: Option<Timestamp>,
    /// Digest of the version that failed to load a moment ago.
    pub(super) failed: Option<String>,
    /// Digest of the candidate that failed to load a moment ago.
    pub(super) failed_trial: Option<String>,
}

/// An area as an operator's decision finds it.
#[derive(Clone, Debug)]
pub(super) struct AreaState {
    pub(super) area: String,
    /// When this was read.
    pub(super) now: Timestamp,
    pub(super) desired: DesiredArea,
    pub(super) running: RunningArea,
    /// What other live areas would lose with this one.
    pub(super) dependents: Vec<LostDependency>,
}

impl DesiredArea {
    /// The live version's digest.
    pub(super) fn live(&self) -> Option<&str> {
        self.pointer.as_ref()?.digest.as_deref()
    }

    /// The digest that a rollback returns to.
    pub(super) fn previous(&self) -> Option<&str> {
        self.pointer.as_ref()?.previous.as_deref()
    }

    /// The trial, if it runs.
    pub(super) fn running_trial(&self) -> Option<&Trial> {
        self.trial.as_ref().filter(|trial| trial.state == TrialState::Running)
    }

    /// The trial, if it runs and serves requests.
    pub(super) fn canary(&self) -> Option<&Trial> {
        self.running_trial().filter(|trial| trial.mode == Mode::Canary)
    }
}

impl RunningArea {
    /// Whether the code of this version is in service here.
    pub(super) fn serves(&self, digest: &str) -> bool {
        self.loaded && self.digest.as_deref() == Some(digest)
    }
}

impl AreaState {
    /// The refusal of a decision because the area was changed meanwhile.
    pub(super) fn overtaken(&self) -> InstallError {
        InstallError::Overtaken { area: self.area.clone() }
    }
}
