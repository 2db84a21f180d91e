//! Operators' decisions about an area. Each function creates an event of
//! `plan`, and `execute` executes it. The audit log gets an entry whether the
//! event is executed or refused.

use serde_json::json;

use super::super::App;
use super::audit_trail::PendingAuditEntries;
use super::error::AreaActionError;
use super::execute::{AreaActionRequest, AreaChange, execute};
use super::plan::{self, AreaAction, TrialRequest};
use super::{folder_version, rows, selection};
use crate::registry::LiveVersionChange;
use assurance_core::domain::deployment::{AuditAction, VersionStage};
use assurance_core::domain::trial::Trial;
use assurance_store::{TransactionAccess, deployments};

/// Request to make a version live.
#[derive(Clone, Copy, Debug)]
pub struct ActivationRequest<'a> {
    /// Name of the area.
    pub area: &'a str,
    /// Version to make live: its digest, the first characters of the digest, or
    /// its version number. `None` selects the version on trial, or else the
    /// only version that is staged or waits for approval.
    pub digest: Option<&'a str>,
    /// Operator's reason for the activation, for the audit log; `None` if none
    /// was given.
    pub why: Option<&'a str>,
    /// Reason to activate the version although it breaks clients; `None`
    /// refuses such a version.
    pub force: Option<&'a str>,
}

/// Makes a version of an area live. Returns `None` if it is live already.
///
/// # Errors
/// See [`AreaActionError`]; nothing has changed.
pub async fn activate(
    app: &App,
    who: &str,
    activation: ActivationRequest<'_>,
) -> Result<Option<LiveVersionChange>, AreaActionError> {
    let ActivationRequest { area, digest: named, why, force } = activation;
    let state = rows::area(app, area).await?;
    let digest = match (named, state.desired.running_trial()) {
        (Some(named), _) => selection::digest_of(app, area, named).await.map(Some),
        (None, Some(_)) => Ok(None),
        (None, None) => selection::only_waiting(app, area).await.map(Some),
    };
    let event = digest.and_then(|digest| plan::activation(&state, digest.as_deref(), force));
    match decide(app, who, area, force.or(why), event).await? {
        Some(AreaChange::Live(change)) => Ok(Some(change)),
        _ => Ok(None),
    }
}

/// Rolls an area back to the version `to`. Without `to`, ends the running
/// canary, or else makes the version live that was live before. The version
/// that was rolled back becomes live again only if an operator activates it by
/// name.
///
/// # Errors
/// See [`AreaActionError`]; nothing has changed.
pub async fn roll_back(
    app: &App,
    who: &str,
    area: &str,
    reason: &str,
    to: Option<&str>,
) -> Result<AreaChange, AreaActionError> {
    let state = rows::area(app, area).await?;
    let event = match to {
        Some(named) => {
            let target = selection::rollback_target(app, &state, named).await;
            target.map(|to| AreaAction::RollBack { to, last: false })
        }
        None => plan::rollback(&state),
    };
    let nothing = || AreaActionError::NothingBefore(area.to_owned());
    decide(app, who, area, Some(reason), event).await?.ok_or_else(nothing)
}

/// Removes an area: its routes return 404 from now on, and its stored data is
/// kept. `force` removes it even if other areas depend on it.
///
/// # Errors
/// The area is not live, or other areas depend on it.
pub async fn remove(
    app: &App,
    who: &str,
    area: &str,
    why: Option<&str>,
    force: bool,
) -> Result<LiveVersionChange, AreaActionError> {
    let from_folder = folder_version::keep(app, who, area, VersionStage::Withdrawn).await;
    let event = Ok(AreaAction::Remove { from_folder, force });
    match decide(app, who, area, why, event).await? {
        Some(AreaChange::Live(change)) => Ok(change),
        _ => Err(AreaActionError::Overtaken(area.to_owned())),
    }
}

/// Begins a trial (canary or shadow) of a version next to the live one. If the
/// version is already on trial, changes mode and share, and resets its
/// statistics.
///
/// # Errors
/// See [`AreaActionError`]; nothing has changed.
pub async fn begin_trial(
    app: &App,
    who: &str,
    request: &TrialRequest,
) -> Result<Trial, AreaActionError> {
    let TrialRequest { area, digest: named, why, .. } = request;
    let digest = selection::digest_of(app, area, named).await;
    let event = digest.map(|digest| {
        let request = TrialRequest { digest, ..request.clone() };
        AreaAction::BeginTrial { request, who }
    });
    trial(area, decide(app, who, area, why.as_deref(), event).await?)
}

/// Ends an area's trial. A canary gets the stage `withdrawn`; a shadow, whose
/// responses were never used, gets `staged`.
///
/// # Errors
/// [`AreaActionError::NoTrial`], or another operator changed the area at the same
/// time.
pub async fn stop_trial(
    app: &App,
    who: &str,
    area: &str,
    reason: &str,
) -> Result<Trial, AreaActionError> {
    let state = rows::area(app, area).await?;
    trial(area, decide(app, who, area, Some(reason), plan::stop(&state)).await?)
}

fn trial(area: &str, changed: Option<AreaChange>) -> Result<Trial, AreaActionError> {
    match changed {
        Some(AreaChange::Trial(trial)) => Ok(trial),
        _ => Err(AreaActionError::Overtaken(area.to_owned())),
    }
}

/// Executes an operator's action on an area. If the action is refused, adds the
/// reason to the audit log.
async fn decide(
    app: &App,
    who: &str,
    area: &str,
    why: Option<&str>,
    event: Result<AreaAction<'_>, AreaActionError>,
) -> Result<Option<AreaChange>, AreaActionError> {
    let digest = event.as_ref().ok().and_then(AreaAction::digest).map(str::to_owned);
    let executed = match event {
        Ok(event) => {
            let decision = AreaActionRequest { area, event, who, why, figures: None };
            execute(app, &decision).await
        }
        Err(error) => Err(error),
    };
    match executed {
        Ok(change) => Ok(change),
        Err(error) => {
            let error = if_area_exists(app, area, error).await;
            Err(PendingAuditEntries::new(app, who, area, digest.as_deref()).refuse(error).await)
        }
    }
}

/// Returns `error`, but [`AreaActionError::NoSuchArea`] if `error` says that a
/// version is missing and the area itself does not exist.
async fn if_area_exists(app: &App, area: &str, error: AreaActionError) -> AreaActionError {
    let names_no_version = matches!(
        error,
        AreaActionError::NotKnown { .. }
            | AreaActionError::NoneWaits(_)
            | AreaActionError::NothingBefore(_)
            | AreaActionError::NoTrial(_)
    );
    if names_no_version && matches!(rows::exists(app, area).await, Ok(false)) {
        return AreaActionError::NoSuchArea(area.to_owned());
    }
    error
}

/// Approves the capabilities that a version requests in addition to those of
/// the live version. Afterwards the version can be activated. Returns the
/// version's digest.
///
/// # Errors
/// The version does not exist, or does not wait for approval.
pub async fn approve(
    app: &App,
    who: &str,
    area: &str,
    named: &str,
    why: Option<&str>,
) -> Result<String, AreaActionError> {
    let digest = &selection::digest_of(app, area, named).await?;
    let mut trail = PendingAuditEntries::new(app, who, area, Some(digest));
    let mut tx = app.store.begin(TransactionAccess::WriteLocked).await?;
    let found = deployments::find(&mut tx, area, digest).await?;
    let found = found.ok_or_else(|| AreaActionError::not_known(area, digest))?;
    if !deployments::approve(&mut tx, area, digest, who, app.clock.now()).await? {
        let (area, digest, stage) = (found.area, found.digest, found.stage);
        return Err(AreaActionError::NotWaiting { area, digest, stage });
    }
    trail.note(AuditAction::Approved, why, Some(json!({"stage": "staged"})));
    trail.keep_with(&mut tx).await?;
    tx.commit().await?;
    tracing::info!(
        target: "security",
        event = "version_approved",
        operator = who,
        area.name = area,
        area.digest = digest,
        "version approved"
    );
    Ok(digest.clone())
}
