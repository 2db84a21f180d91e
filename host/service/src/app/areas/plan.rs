//! Plans how an operator's decision changes an area's rows. Does no I/O. The
//! cells of this table are the new stage of a version after an event:
//!
//! | version's stage | activate | begin trial | end trial | other goes live | rolled back, removed |
//! |---|---|---|---|---|---|
//! | awaiting approval | live, if it requests no further capabilities | canary, shadow, on the same condition | | | |
//! | staged, retired, withdrawn | live | canary, shadow | | | |
//! | canary, shadow | live | canary, shadow, with new statistics | withdrawn, staged | staged | |
//! | live | | refused | | retired | withdrawn |

use std::collections::BTreeSet;

use super::error::AreaActionError;
use super::state::DesiredAndRunningArea;
use crate::registry::RegistryError;
use assurance_core::domain::deployment::{AuditAction, VersionStage};
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::trial::{Trial, TrialMode, TrialShare, TrialState};

/// Request to try a version next to the live one.
#[derive(Clone, Debug)]
pub struct TrialRequest {
    /// Name of the area.
    pub area: String,
    /// Version: its digest, the first characters of the digest, or its version number.
    pub digest: String,
    /// Mode of the trial: canary or shadow.
    pub mode: TrialMode,
    /// Share of the workspaces that a canary serves, or of the requests that a shadow receives.
    pub share: TrialShare,
    /// Workspaces that a canary serves in addition to the share.
    pub workspaces: BTreeSet<WorkspaceId>,
    /// Operator's reason for the trial, for the audit log; `None` if none was given.
    pub why: Option<String>,
}

/// Action on an area, decided by an operator or by the host.
#[derive(Clone, Debug)]
pub(super) enum AreaAction<'a> {
    /// Make a version of the area live.
    Activate {
        digest: String,
        /// Whether to refuse the activation unless the version is still on trial.
        on_trial: bool,
        /// Operator's reason to activate the version although it breaks clients; `None` refuses
        /// such a version.
        force: Option<&'a str>,
    },
    /// Make a version live that was live before.
    RollBack {
        to: String,
        /// Whether to refuse the rollback unless `to` is still the version that a rollback without
        /// a target makes live.
        last: bool,
    },
    /// Remove the area.
    Remove {
        /// Digest of the version that runs from the node's component folder; `None` if the area
        /// does not run from it.
        from_folder: Option<String>,
        /// Whether to remove the area even if other areas depend on it.
        force: bool,
    },
    /// Begin a trial of a version next to the live one.
    BeginTrial { request: TrialRequest, who: &'a str },
    /// End the running trial; `end` is the trial's new state.
    EndTrial { trial: Trial, end: TrialState },
}

/// Change of an area's database rows, made in one transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum AreaRowsChange {
    /// Changes the live version in the area's row of `live_areas`.
    MoveLive {
        /// Digest of the new live version; `None` removes the area.
        digest: Option<String>,
        /// New stage of the version that was live before.
        left: VersionStage,
        /// Digest of the version that was live, if it came from a folder: the row does not contain
        /// it then.
        from_folder: Option<String>,
    },
    /// Replaces the area's row of `area_trials` by this trial.
    BeginTrial(Trial),
    /// Ends this trial in the area's row of `area_trials`; `end` is its final state.
    EndTrial { trial: Trial, end: TrialState },
}

impl AreaAction<'_> {
    /// Returns the digest of the version that the action is about; `None` for the removal of the
    /// area.
    pub(super) fn digest(&self) -> Option<&str> {
        match self {
            Self::Activate { digest, .. } | Self::RollBack { to: digest, .. } => Some(digest),
            Self::Remove { .. } => None,
            Self::BeginTrial { request, .. } => Some(&request.digest),
            Self::EndTrial { trial, .. } => Some(&trial.digest),
        }
    }

    /// Returns the digest of the version that must be loaded before the rows change; `None` if
    /// none.
    pub(super) fn loads(&self) -> Option<&str> {
        if matches!(self, Self::EndTrial { .. }) { None } else { self.digest() }
    }

    /// Returns the step that the audit log records for the action.
    pub(super) fn step(&self) -> AuditAction {
        match self {
            Self::Activate { .. } => AuditAction::Activated,
            Self::RollBack { .. } => AuditAction::RolledBack,
            Self::Remove { .. } => AuditAction::Removed,
            Self::BeginTrial { request, .. } => match request.mode {
                TrialMode::Canary => AuditAction::CanaryBegun,
                TrialMode::Shadow => AuditAction::ShadowBegun,
            },
            Self::EndTrial { end: TrialState::RolledBack, .. } => AuditAction::CanaryRolledBack,
            Self::EndTrial { .. } => AuditAction::TrialStopped,
        }
    }
}

/// Returns the stage of a version on trial.
pub(super) fn stage_on_trial(mode: TrialMode) -> VersionStage {
    match mode {
        TrialMode::Canary => VersionStage::Canary,
        TrialMode::Shadow => VersionStage::Shadow,
    }
}

/// Returns the stage of a version after its trial. A shadow returns to `staged`, because its
/// responses were never used.
pub(super) fn stage_after_trial(mode: TrialMode) -> VersionStage {
    match mode {
        TrialMode::Canary => VersionStage::Withdrawn,
        TrialMode::Shadow => VersionStage::Staged,
    }
}

/// Returns the action that activates the named version, or else the version on trial.
pub(super) fn activation<'a>(
    state: &DesiredAndRunningArea,
    named: Option<&str>,
    force: Option<&'a str>,
) -> Result<AreaAction<'a>, AreaActionError> {
    let digest = named.or(state.desired.running_trial().map(|trial| trial.digest.as_str()));
    let no_trial = || AreaActionError::NoTrial(state.area.clone());
    let digest = digest.ok_or_else(no_trial)?.to_owned();
    Ok(AreaAction::Activate { digest, on_trial: named.is_none(), force })
}

/// Returns the action for a rollback without a target: the end of the canary, or else a rollback to
/// the version that was live before. If a newer file runs instead of the version in the area's row,
/// that is the row's version.
pub(super) fn rollback(
    state: &DesiredAndRunningArea,
) -> Result<AreaAction<'static>, AreaActionError> {
    if let Some(canary) = state.desired.canary() {
        return Ok(AreaAction::EndTrial { trial: canary.clone(), end: TrialState::Stopped });
    }
    let target = state.desired.rollback_target(&state.running).map(str::to_owned);
    let nothing = || AreaActionError::NothingBefore(state.area.clone());
    Ok(AreaAction::RollBack { to: target.ok_or_else(nothing)?, last: true })
}

/// Returns the action that ends the area's running trial.
pub(super) fn stop(state: &DesiredAndRunningArea) -> Result<AreaAction<'static>, AreaActionError> {
    let no_trial = || AreaActionError::NoTrial(state.area.clone());
    let trial = state.desired.running_trial().cloned().ok_or_else(no_trial)?;
    Ok(AreaAction::EndTrial { trial, end: TrialState::Stopped })
}

/// Returns the change of the area's rows for an action; `None` if the area is already in the
/// requested state.
pub(super) fn plan(
    state: &DesiredAndRunningArea,
    event: &AreaAction<'_>,
) -> Result<Option<AreaRowsChange>, AreaActionError> {
    match event {
        AreaAction::Activate { digest, on_trial, .. } => activate(state, digest, *on_trial),
        AreaAction::RollBack { to, last: true }
            if state.desired.rollback_target(&state.running) != Some(to) =>
        {
            Err(state.overtaken())
        }
        AreaAction::RollBack { to, .. } => {
            Ok(Some(to_live(Some(to.clone()), VersionStage::Withdrawn)))
        }
        AreaAction::Remove { from_folder, force } => {
            remove(state, from_folder.as_deref(), *force).map(Some)
        }
        AreaAction::BeginTrial { request, who } => {
            begin(state, request, who).map(|trial| Some(AreaRowsChange::BeginTrial(trial)))
        }
        AreaAction::EndTrial { trial, end } => match state.desired.running_trial() {
            Some(running) if running.revision == trial.revision => {
                Ok(Some(AreaRowsChange::EndTrial { trial: trial.clone(), end: *end }))
            }
            _ => Err(state.overtaken()),
        },
    }
}

fn activate(
    state: &DesiredAndRunningArea,
    digest: &str,
    on_trial: bool,
) -> Result<Option<AreaRowsChange>, AreaActionError> {
    if state.desired.live() == Some(digest) && state.running.serves(digest) {
        return Ok(None);
    }
    let is_tried = state.desired.running_trial().is_some_and(|trial| trial.digest == digest);
    if on_trial && !is_tried {
        return Err(state.overtaken());
    }
    Ok(Some(to_live(Some(digest.to_owned()), VersionStage::Retired)))
}

fn remove(
    state: &DesiredAndRunningArea,
    from_folder: Option<&str>,
    force: bool,
) -> Result<AreaRowsChange, AreaActionError> {
    let area = state.area.clone();
    if !force && !state.dependents.is_empty() {
        return Err(AreaActionError::DependedOn { area, dependents: state.dependents.clone() });
    }
    if state.desired.live().is_none() && state.running.digest.is_none() {
        return Err(RegistryError::NotLive(area).into());
    }
    let (left, from_folder) = (VersionStage::Withdrawn, from_folder.map(str::to_owned));
    Ok(AreaRowsChange::MoveLive { digest: None, left, from_folder })
}

fn begin(
    state: &DesiredAndRunningArea,
    request: &TrialRequest,
    who: &str,
) -> Result<Trial, AreaActionError> {
    let TrialRequest { area, digest, .. } = request.clone();
    let other = state.desired.running_trial().filter(|trial| trial.digest != digest);
    if let Some(Trial { digest, .. }) = other.cloned() {
        return Err(AreaActionError::OtherTrial { area, digest });
    }
    let Some(live) = &state.running.digest else { return Err(RegistryError::NotLive(area).into()) };
    if *live == digest {
        return Err(AreaActionError::AlreadyLive { area, digest });
    }
    Ok(Trial {
        area,
        digest,
        mode: request.mode,
        share: request.share,
        workspaces: request.workspaces.clone(),
        state: TrialState::Running,
        why: request.why.clone(),
        revision: state.desired.trial.as_ref().map_or(0, |last| last.revision) + 1,
        begun_at: state.now,
        begun_by: who.to_owned(),
        ended_at: None,
    })
}

fn to_live(digest: Option<String>, left: VersionStage) -> AreaRowsChange {
    AreaRowsChange::MoveLive { digest, left, from_folder: None }
}
