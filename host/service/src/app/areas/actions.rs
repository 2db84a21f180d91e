//! Operators' decisions about an area. Each names an event of `plan`, which
//! `execute` executes; the audit log has it, executed or refused.

use serde_json::json;

use super::super::App;
use super::audit_trail::AuditTrail;
use super::error::InstallError;
use super::execute::{ActionResult, Decision, execute};
use super::plan::{self, AreaEvent, TrialRequest};
use super::{removed, rows, selection};
use crate::registry::LiveChange;
use assurance_core::domain::deployment::Step;
use assurance_core::domain::trial::Trial;
use assurance_store::{Access, deployments};

/// Which version is to go live, and why.
#[derive(Clone, Copy, Debug)]
pub struct Activation<'a> {
    /// The area.
    pub area: &'a str,
    /// One of its versions: its digest, the first characters of it, or its
    /// number. `None`: the one on trial, or else the only one that waits.
    pub digest: Option<&'a str>,
    /// Reason for the audit log.
    pub why: Option<&'a str>,
    /// Why it may break clients.
    pub force: Option<&'a str>,
}

/// What a rollback undid.
#[derive(Clone, Debug)]
pub enum RollbackResult {
    /// The live version; the one before it is live again.
    Live(LiveChange),
    /// The trial that ran; the live version serves everybody.
    Trial(Trial),
}

/// Makes a version live that passed the checks; `None` if it is live already.
///
/// # Errors
/// See [`InstallError`]; nothing has changed.
pub async fn activate(
    app: &App,
    who: &str,
    activation: Activation<'_>,
) -> Result<Option<LiveChange>, InstallError> {
    let Activation { area, digest: named, why, force } = activation;
    let state = rows::area(app, area).await?;
    let digest = match (named, state.desired.running_trial()) {
        (Some(named), _) => selection::digest_of(app, area, named).await.map(Some),
        (None, Some(_)) => Ok(None),
        (None, None) => selection::only_waiting(app, area).await.map(Some),
    };
    let event = digest.and_then(|digest| plan::activation(&state, digest.as_deref(), force));
    match decide(app, who, area, force.or(why), event).await? {
        ActionResult::Live(change) => Ok(Some(change)),
        _ => Ok(None),
    }
}

/// Rolls back to the named version. Without a name, takes the last step back:
/// ends the canary that runs, or else makes the version live that was live
/// before. What is rolled back is live again only if an operator names it.
///
/// # Errors
/// See [`InstallError`]; nothing has changed.
pub async fn roll_back(
    app: &App,
    who: &str,
    area: &str,
    reason: &str,
    to: Option<&str>,
) -> Result<RollbackResult, InstallError> {
    let state = rows::area(app, area).await?;
    let event = match to {
        Some(named) => {
            let target = selection::rollback_target(app, &state, named).await;
            target.map(|to| AreaEvent::RollBack { to, last: false })
        }
        None => plan::rollback(&state),
    };
    match decide(app, who, area, Some(reason), event).await? {
        ActionResult::Live(change) => Ok(RollbackResult::Live(change)),
        ActionResult::Trial(trial) => Ok(RollbackResult::Trial(trial)),
        ActionResult::Unchanged => Err(InstallError::NothingBefore { area: area.to_owned() }),
    }
}

/// Removes an area: from now on its routes return 404. What it has stored
/// stays. Refused while other areas depend on it, unless it is forced.
///
/// # Errors
/// It is not live, or others depend on it.
pub async fn remove(
    app: &App,
    who: &str,
    area: &str,
    why: Option<&str>,
    force: bool,
) -> Result<LiveChange, InstallError> {
    let from_folder = removed::keep_from_folder(app, who, area).await;
    let event = Ok(AreaEvent::Remove { from_folder, force });
    match decide(app, who, area, why, event).await? {
        ActionResult::Live(change) => Ok(change),
        _ => Err(InstallError::Overtaken { area: area.to_owned() }),
    }
}

/// Tries a version next to the live one, or changes how it is tried: its
/// figures begin anew.
///
/// # Errors
/// See [`InstallError`]; nothing has changed.
pub async fn begin_trial(
    app: &App,
    who: &str,
    request: &TrialRequest,
) -> Result<Trial, InstallError> {
    let TrialRequest { area, digest: named, why, .. } = request;
    let request = match selection::digest_of(app, area, named).await {
        Ok(digest) => TrialRequest { digest, ..request.clone() },
        Err(error) => return Err(AuditTrail::new(app, who, area, None).refuse(error).await),
    };
    let event = Ok(AreaEvent::BeginTrial { request: &request, who });
    trial(area, decide(app, who, area, why.as_deref(), event).await?)
}

/// Ends an area's trial. A canary is withdrawn; a shadow, which has served
/// nobody, is staged.
///
/// # Errors
/// [`InstallError::NoTrial`], or another operator was faster.
pub async fn stop_trial(
    app: &App,
    who: &str,
    area: &str,
    reason: &str,
) -> Result<Trial, InstallError> {
    let state = rows::area(app, area).await?;
    trial(area, decide(app, who, area, Some(reason), plan::stop(&state)).await?)
}

fn trial(area: &str, executed: ActionResult) -> Result<Trial, InstallError> {
    match executed {
        ActionResult::Trial(trial) => Ok(trial),
        _ => Err(InstallError::Overtaken { area: area.to_owned() }),
    }
}

/// Executes an event; if it is refused, the audit log has the reason.
async fn decide(
    app: &App,
    who: &str,
    area: &str,
    why: Option<&str>,
    event: Result<AreaEvent<'_>, InstallError>,
) -> Result<ActionResult, InstallError> {
    let event = match event {
        Ok(event) => event,
        Err(error) => return Err(AuditTrail::new(app, who, area, None).refuse(error).await),
    };
    let decision = Decision { area, event, who, why, figures: None };
    match execute(app, &decision).await {
        Ok(executed) => Ok(executed),
        Err(error) => {
            Err(AuditTrail::new(app, who, area, decision.event.digest()).refuse(error).await)
        }
    }
}

/// Approves the capabilities that a version asks for beyond the live one; from
/// then on it can be activated. Returns its digest.
///
/// # Errors
/// There is no such version, or it does not wait for approval.
pub async fn approve(
    app: &App,
    who: &str,
    area: &str,
    named: &str,
    why: Option<&str>,
) -> Result<String, InstallError> {
    let digest = &selection::digest_of(app, area, named).await?;
    let mut trail = AuditTrail::new(app, who, area, Some(digest));
    let mut tx = app.store.begin(Access::WriteLocked).await?;
    let found = deployments::find(&mut tx, area, digest).await?;
    let found = found.ok_or_else(|| InstallError::not_known(area, digest))?;
    if !deployments::approve(&mut tx, area, digest, who, app.clock.now()).await? {
        let (area, digest, stage) = (found.area, found.digest, found.stage);
        return Err(InstallError::NotWaiting { area, digest, stage });
    }
    trail.note(Step::Approved, why, Some(json!({"stage": "staged"})));
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
