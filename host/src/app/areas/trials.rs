//! Versions on trial, as operators begin and end them.
//!
//! As with an area's pointer, the database's row changes first, in one
//! transaction with its line in the audit log; then this process, and the
//! other nodes follow. A pointer that moves ends the trial beside it.

use std::collections::BTreeSet;

use serde_json::json;

use super::super::App;
use super::trail::Trail;
use super::{InstallError, checks, follow, ready, switch};
use crate::domain::deployment::{Deployment, Stage, Step};
use crate::domain::id::WorkspaceId;
use crate::domain::manifest::Manifest;
use crate::domain::trial::{Mode, Share, Trial, TrialState};
use crate::registry::{Plan, Refusal};
use crate::store::trials::Ending;
use crate::store::{self, Access, trials};

/// Which version is to be tried, and how.
#[derive(Clone, Debug)]
pub struct TrialWish {
    /// The area.
    pub area: String,
    /// One of its versions.
    pub digest: String,
    /// What it is to do.
    pub mode: Mode,
    /// For which share of the workspaces, or of a shadow's requests.
    pub share: Share,
    /// For these whatever the share.
    pub workspaces: BTreeSet<WorkspaceId>,
    /// For the audit log.
    pub why: Option<String>,
}

/// Tries a version beside the live one, or changes how it is tried: from then
/// on it is judged anew.
///
/// # Errors
/// See [`InstallError`]; nothing has changed.
pub async fn begin_trial(app: &App, who: &str, wish: &TrialWish) -> Result<Trial, InstallError> {
    let trail = Trail::new(app, who, &wish.area, Some(&wish.digest));
    match begin(app, who, wish).await {
        Ok(trial) => Ok(trial),
        Err(error) => Err(trail.refuse(error).await),
    }
}

async fn begin(app: &App, who: &str, wish: &TrialWish) -> Result<Trial, InstallError> {
    let (found, revision) = allow(app, wish).await?;
    let stage = found.stage;
    let candidate = follow::candidate(app, found).await?;
    check(app, wish, candidate.manifest(), stage).await?;
    let version = ready::to_be_tried(app, &trial(app, who, wish, revision), candidate).await?;
    let _one_at_a_time = app.installing.lock().await;
    // Others may have changed what it is tried beside.
    let (found, revision) = allow(app, wish).await?;
    check(app, wish, &version.manifest, found.stage).await?;
    let trial = trial(app, who, wish, revision);
    // First of all, so that what cannot run here is not begun.
    let plan = app.registry.plan_trial_again(&trial, &version)?;
    let mut trail = Trail::new(app, who, &wish.area, Some(&wish.digest));
    let changed = json!({"share": trial.share, "workspaces": trial.workspaces});
    let (step, stage) = match wish.mode {
        Mode::Canary => (Step::CanaryBegun, Stage::Canary),
        Mode::Shadow => (Step::ShadowBegun, Stage::Shadow),
    };
    trail.note(step, wish.why.as_deref(), Some(changed));
    let kept = async {
        let mut tx = app.store.begin(Access::WriteLocked).await?;
        trials::begin(&mut tx, &trial, stage).await?;
        trail.keep_with(&mut tx).await?;
        tx.commit().await
    };
    match kept.await {
        Err(store::Error::RunAgain) => Err(overtaken(&wish.area)),
        Err(error) => Err(error.into()),
        Ok(()) => enter(app, &trial.area, plan).map(|()| trial),
    }
}

/// The version, where it is one that may be tried now, and the revision of the
/// area's last trial.
async fn allow(app: &App, wish: &TrialWish) -> Result<(Deployment, i64), InstallError> {
    let TrialWish { area, digest, .. } = wish;
    let last = last(app, area).await?;
    let running = last.as_ref().filter(|trial| trial.state == TrialState::Running);
    if let Some(other) = running.filter(|trial| trial.digest != *digest) {
        let (area, digest) = (area.clone(), other.digest.clone());
        return Err(InstallError::OtherTrial { area, digest });
    }
    let snapshot = app.registry.snapshot();
    let live = snapshot.area(area).ok_or_else(|| Refusal::NotLive(area.clone()))?;
    if live.digest == *digest {
        let (area, digest) = (area.clone(), digest.clone());
        return Err(InstallError::AnswersAlready { area, digest });
    }
    let unknown = || InstallError::NotKnown { area: area.clone(), digest: digest.clone() };
    let found = follow::version(app, area, digest).await?.ok_or_else(unknown)?;
    Ok((found, last.map_or(0, |last| last.revision)))
}

/// Holds a version against the live one, as it is to be tried.
async fn check(
    app: &App,
    wish: &TrialWish,
    manifest: &Manifest,
    stage: Stage,
) -> Result<(), InstallError> {
    let at = switch::pointer(app, &wish.area).await?;
    let checked = match wish.mode {
        Mode::Canary => checks::check_canary(app, at.as_ref(), manifest, &wish.digest).await?,
        Mode::Shadow => checks::check_shadow(app, at.as_ref(), manifest).await?,
    };
    if stage == Stage::AwaitingApproval && !checked.asks.is_empty() {
        return Err(checks::needs_approval(manifest, &wish.digest, &checked));
    }
    Ok(())
}

fn trial(app: &App, who: &str, wish: &TrialWish, last_revision: i64) -> Trial {
    Trial {
        area: wish.area.clone(),
        digest: wish.digest.clone(),
        mode: wish.mode,
        share: wish.share,
        workspaces: wish.workspaces.clone(),
        state: TrialState::Running,
        why: wish.why.clone(),
        revision: last_revision + 1,
        begun_at: app.clock.now(),
        begun_by: who.to_owned(),
        ended_at: None,
    }
}

/// Ends an area's trial. A canary is withdrawn; a shadow, which has answered
/// nobody, waits.
///
/// # Errors
/// [`InstallError::NoTrial`], or another operator was faster.
pub async fn stop_trial(
    app: &App,
    who: &str,
    area: &str,
    reason: &str,
) -> Result<Trial, InstallError> {
    let _one_at_a_time = app.installing.lock().await;
    stop(app, who, area, reason).await
}

/// The caller has `App::installing`.
pub(super) async fn stop(
    app: &App,
    who: &str,
    area: &str,
    reason: &str,
) -> Result<Trial, InstallError> {
    let Some(trial) = running(app, area).await? else {
        let error = InstallError::NoTrial { area: area.to_owned() };
        return Err(Trail::new(app, who, area, None).refuse(error).await);
    };
    let mut trail = Trail::new(app, who, area, Some(&trial.digest));
    trail.note(Step::TrialStopped, Some(reason), None);
    if !end(app, &trial, TrialState::Stopped, reason, trail).await? {
        return Err(overtaken(area));
    }
    Ok(trial)
}

/// Ends a trial with its line in the audit log. Answers whether the trial still
/// ran. The caller has `App::installing`.
pub(super) async fn end(
    app: &App,
    trial: &Trial,
    state: TrialState,
    why: &str,
    mut trail: Trail<'_>,
) -> Result<bool, InstallError> {
    let (why, at) = (Some(why), app.clock.now());
    let stage = match trial.mode {
        Mode::Canary => Stage::Withdrawn,
        Mode::Shadow => Stage::Staged,
    };
    let mut tx = app.store.begin(Access::WriteLocked).await?;
    let ended = trials::end(&mut tx, trial, &Ending { state, why, at, stage }).await?;
    if ended {
        trail.keep_with(&mut tx).await?;
        tx.commit().await?;
    }
    let mine = app.registry.snapshot().trial(&trial.area).is_some();
    if mine {
        enter(app, &trial.area, app.registry.plan_trial_end(&trial.area)?)?;
    }
    Ok(ended)
}

/// Lets this process do what the row says. Only who has `App::installing`
/// changes the registry.
pub(super) fn enter(app: &App, area: &str, plan: Plan) -> Result<(), InstallError> {
    app.registry.activate(plan).ok_or_else(|| overtaken(area))?;
    app.node.trial_recovered(area);
    app.node.changed();
    let snapshot = app.registry.snapshot();
    let digest = snapshot.trial(area).map(|on_trial| {
        app.node.keep_warm(&on_trial.version);
        on_trial.version.digest.as_str()
    });
    tracing::info!(area.name = area, candidate = digest, "trial changed");
    Ok(())
}

/// An area's trial, if one runs.
pub(super) async fn running(app: &App, area: &str) -> Result<Option<Trial>, store::Error> {
    let last = last(app, area).await?;
    Ok(last.filter(|trial| trial.state == TrialState::Running))
}

async fn last(app: &App, area: &str) -> Result<Option<Trial>, store::Error> {
    let mut connection = app.store.reader().await?;
    let last = trials::of(&mut connection, area).await?;
    connection.release();
    Ok(last)
}

pub(super) fn overtaken(area: &str) -> InstallError {
    InstallError::Overtaken { area: area.to_owned() }
}
