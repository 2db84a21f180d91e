//! The life of an area: what an operator's decision changes in its rows. Pure:
//! the table of states and events below is tested as such.
//!
//! | version's stage | activate | begin trial | end trial | other goes live | rolled back, removed |
//! |---|---|---|---|---|---|
//! | awaiting approval | live, if it asks for nothing more | canary, shadow, likewise | | | |
//! | staged, retired, withdrawn | live | canary, shadow | | | |
//! | canary, shadow | live | canary, shadow, begun anew | withdrawn, staged | staged | |
//! | live | | refused | | retired | withdrawn |

use std::collections::BTreeSet;

use super::error::InstallError;
use super::state::AreaState;
use crate::registry::RegistryError;
use assurance_core::domain::deployment::{Stage, Step};
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::trial::{Mode, TrafficShare, Trial, TrialState};

/// Which version is tried next to the live one, and how.
#[derive(Clone, Debug)]
pub struct TrialRequest {
    /// The area.
    pub area: String,
    /// The version: its digest, the first characters of it, or its number.
    pub digest: String,
    /// Canary or shadow.
    pub mode: Mode,
    /// Share of the workspaces, or of a shadow's requests.
    pub share: TrafficShare,
    /// Workspaces that a canary serves whatever the share.
    pub workspaces: BTreeSet<WorkspaceId>,
    /// Reason for the audit log.
    pub why: Option<String>,
}

/// A decision about an area.
#[derive(Clone, Debug)]
pub(super) enum AreaEvent<'a> {
    /// This version goes live.
    Activate {
        digest: String,
        /// Only if it is still on trial.
        on_trial: bool,
        /// Why it may break clients.
        force: Option<&'a str>,
    },
    /// A version that was live goes live again.
    RollBack {
        to: String,
        /// Only if it still is the one that was live before.
        last: bool,
    },
    /// The area is removed.
    Remove {
        /// Digest of the version that ran from the folder, if one did.
        from_folder: Option<String>,
        /// Although other areas depend on it.
        force: bool,
    },
    /// A version is tried next to the live one.
    BeginTrial { request: &'a TrialRequest, who: &'a str },
    /// The trial ends, as stopped or rolled back.
    EndTrial { trial: Trial, end: TrialState },
}

/// A change of an area's rows, in one transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Transition {
    /// The row of `live_areas` names another version.
    MoveLive {
        /// `None` if the area is removed.
        digest: Option<String>,
        /// Stage of the version that was live.
        left: Stage,
        /// That version, if it came from a folder and the row does not name it.
        from_folder: Option<String>,
    },
    /// The row of `area_trials` is this one.
    BeginTrial(Trial),
    /// That trial ends.
    EndTrial { trial: Trial, end: TrialState },
}

impl AreaEvent<'_> {
    /// The version that the decision is about.
    pub(super) fn digest(&self) -> Option<&str> {
        match self {
            Self::Activate { digest, .. } | Self::RollBack { to: digest, .. } => Some(digest),
            Self::Remove { .. } => None,
            Self::BeginTrial { request, .. } => Some(&request.digest),
            Self::EndTrial { trial, .. } => Some(&trial.digest),
        }
    }

    /// The version that has to be loaded before the rows change.
    pub(super) fn loads(&self) -> Option<&str> {
        if matches!(self, Self::EndTrial { .. }) { None } else { self.digest() }
    }

    /// The step that the audit log names.
    pub(super) fn step(&self) -> Step {
        match self {
            Self::Activate { .. } => Step::Activated,
            Self::RollBack { .. } => Step::RolledBack,
            Self::Remove { .. } => Step::Removed,
            Self::BeginTrial { request, .. } => match request.mode {
                Mode::Canary => Step::CanaryBegun,
                Mode::Shadow => Step::ShadowBegun,
            },
            Self::EndTrial { end: TrialState::RolledBack, .. } => Step::CanaryRolledBack,
            Self::EndTrial { .. } => Step::TrialStopped,
        }
    }
}

/// Stage of a version that passed the checks.
pub(super) fn stage_after_checks(asks_for_more: bool) -> Stage {
    if asks_for_more { Stage::AwaitingApproval } else { Stage::Staged }
}

/// Stage of a version on trial.
pub(super) fn stage_on_trial(mode: Mode) -> Stage {
    match mode {
        Mode::Canary => Stage::Canary,
        Mode::Shadow => Stage::Shadow,
    }
}

/// Stage of a version whose trial ended: a shadow has served nobody.
pub(super) fn stage_after_trial(mode: Mode) -> Stage {
    match mode {
        Mode::Canary => Stage::Withdrawn,
        Mode::Shadow => Stage::Staged,
    }
}

/// An activation of the named version, or else of the one on trial.
pub(super) fn activation<'a>(
    state: &AreaState,
    named: Option<&str>,
    force: Option<&'a str>,
) -> Result<AreaEvent<'a>, InstallError> {
    let digest = named.or(state.desired.running_trial().map(|trial| trial.digest.as_str()));
    let no_trial = || InstallError::NoTrial { area: state.area.clone() };
    let digest = digest.ok_or_else(no_trial)?.to_owned();
    Ok(AreaEvent::Activate { digest, on_trial: named.is_none(), force })
}

/// The last step back: the end of the canary, or else the version that was live
/// before.
pub(super) fn rollback(state: &AreaState) -> Result<AreaEvent<'static>, InstallError> {
    if let Some(canary) = state.desired.canary() {
        return Ok(AreaEvent::EndTrial { trial: canary.clone(), end: TrialState::Stopped });
    }
    let previous = state.desired.previous().map(str::to_owned);
    let nothing = || InstallError::NothingBefore { area: state.area.clone() };
    Ok(AreaEvent::RollBack { to: previous.ok_or_else(nothing)?, last: true })
}

/// The end of the trial that runs.
pub(super) fn stop(state: &AreaState) -> Result<AreaEvent<'static>, InstallError> {
    let no_trial = || InstallError::NoTrial { area: state.area.clone() };
    let trial = state.desired.running_trial().cloned().ok_or_else(no_trial)?;
    Ok(AreaEvent::EndTrial { trial, end: TrialState::Stopped })
}

/// What an event changes; `None` if everything is so already.
pub(super) fn plan(
    state: &AreaState,
    event: &AreaEvent<'_>,
) -> Result<Option<Transition>, InstallError> {
    match event {
        AreaEvent::Activate { digest, on_trial, .. } => activate(state, digest, *on_trial),
        AreaEvent::RollBack { to, last: true } if state.desired.previous() != Some(to) => {
            Err(state.overtaken())
        }
        AreaEvent::RollBack { to, .. } => Ok(Some(to_live(Some(to.clone()), Stage::Withdrawn))),
        AreaEvent::Remove { from_folder, force } => {
            remove(state, from_folder.as_deref(), *force).map(Some)
        }
        AreaEvent::BeginTrial { request, who } => {
            begin(state, request, who).map(|trial| Some(Transition::BeginTrial(trial)))
        }
        AreaEvent::EndTrial { trial, end } => match state.desired.running_trial() {
            Some(running) if running.revision == trial.revision => {
                Ok(Some(Transition::EndTrial { trial: trial.clone(), end: *end }))
            }
            _ => Err(state.overtaken()),
        },
    }
}

fn activate(
    state: &AreaState,
    digest: &str,
    on_trial: bool,
) -> Result<Option<Transition>, InstallError> {
    if state.desired.live() == Some(digest) && state.running.serves(digest) {
        return Ok(None);
    }
    let is_tried = state.desired.running_trial().is_some_and(|trial| trial.digest == digest);
    if on_trial && !is_tried {
        return Err(state.overtaken());
    }
    Ok(Some(to_live(Some(digest.to_owned()), Stage::Retired)))
}

fn remove(
    state: &AreaState,
    from_folder: Option<&str>,
    force: bool,
) -> Result<Transition, InstallError> {
    let area = state.area.clone();
    if !force && !state.dependents.is_empty() {
        return Err(InstallError::DependedOn { area, dependents: state.dependents.clone() });
    }
    if state.desired.live().is_none() && state.running.digest.is_none() {
        return Err(RegistryError::NotLive(area).into());
    }
    let (left, from_folder) = (Stage::Withdrawn, from_folder.map(str::to_owned));
    Ok(Transition::MoveLive { digest: None, left, from_folder })
}

fn begin(state: &AreaState, request: &TrialRequest, who: &str) -> Result<Trial, InstallError> {
    let TrialRequest { area, digest, .. } = request.clone();
    let other = state.desired.running_trial().filter(|trial| trial.digest != digest);
    if let Some(Trial { digest, .. }) = other.cloned() {
        return Err(InstallError::OtherTrial { area, digest });
    }
    let Some(live) = &state.running.digest else { return Err(RegistryError::NotLive(area).into()) };
    if *live == digest {
        return Err(InstallError::AlreadyLive { area, digest });
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

fn to_live(digest: Option<String>, left: Stage) -> Transition {
    Transition::MoveLive { digest, left, from_folder: None }
}
