//! Moving an area's pointer: forward, back, or to nothing.
//!
//! The database's pointer moves first, in one transaction with its line in
//! the audit log; then this process's. Nothing is compiled in between, and
//! requests under way end on the version they began with.

use std::sync::Arc;

use serde_json::json;

use super::super::App;
use super::trail::Trail;
use super::trials::{overtaken, running, stop};
use super::{InstallError, checks, end_turns, follow, ready, removed};
use crate::domain::deployment::{Deployment, Pointer, Stage, Step};
use crate::domain::manifest::Manifest;
use crate::domain::trial::{Mode, Trial};
use crate::registry::{AreaVersion, Change, Plan};
use crate::store::deployments::{self, Moved};
use crate::store::{self, Access};

/// Which version is to answer, and why.
#[derive(Clone, Copy, Debug)]
pub struct Activation<'a> {
    /// The area.
    pub area: &'a str,
    /// One of its versions; none: the one on trial.
    pub digest: Option<&'a str>,
    /// For the audit log.
    pub why: Option<&'a str>,
    /// Why it may break clients.
    pub force: Option<&'a str>,
}

/// Lets a version answer that passed the checks; nothing, where it does
/// already.
///
/// # Errors
/// See [`InstallError`]; nothing has changed.
pub async fn activate(
    app: &App,
    who: &str,
    wish: Activation<'_>,
) -> Result<Option<Change>, InstallError> {
    let Activation { area, digest: named, why, force } = wish;
    let on_trial = running(app, area).await?.map(|trial| trial.digest);
    let Some(digest) = named.or(on_trial.as_deref()) else {
        let error = InstallError::NoTrial { area: area.to_owned() };
        return Err(Trail::new(app, who, area, None).refuse(error).await);
    };
    let trail = Trail::new(app, who, area, Some(digest));
    let wish =
        Wish { area, digest: Some(digest), answered: None, step: Step::Activated, why, force };
    if answers(app, pointer(app, area).await?.as_ref(), digest) {
        return Ok(None);
    }
    let ready = match make_ready(app, wish).await {
        Ok(ready) => ready,
        Err(error) => return Err(trail.refuse(error).await),
    };
    let _one_at_a_time = app.installing.lock().await;
    let at = pointer(app, area).await?;
    if answers(app, at.as_ref(), digest) {
        return Ok(None);
    }
    // A trial that has ended meanwhile must not be what answers now.
    let is_tried = running(app, area).await?.is_some_and(|trial| trial.digest == digest);
    if named.is_none() && !is_tried {
        return Err(trail.refuse(overtaken(area)).await);
    }
    match move_to(app, who, at.as_ref(), wish, ready, trail).await {
        Ok(change) => Ok(Some(change)),
        Err((trail, error)) => Err(trail.refuse(error).await),
    }
}

/// Whether a version is live, by its pointer and in this process.
fn answers(app: &App, at: Option<&Pointer>, digest: &str) -> bool {
    at.is_some_and(|at| {
        let live = app.registry.snapshot();
        let runs = live.running(&at.area).is_some_and(|live| live.digest == digest);
        runs && at.digest.as_deref() == Some(digest)
    })
}

/// What was taken back.
#[derive(Clone, Debug)]
pub enum RolledBack {
    /// The live version; the one before it answers.
    Live(Change),
    /// The trial that ran; the live version answers, as it did.
    Trial(Trial),
}

/// Takes the last step back: ends the canary that runs, or else lets the
/// version answer that was live before. What is rolled back only comes again
/// where an operator names it.
///
/// # Errors
/// See [`InstallError`]; nothing has changed.
pub async fn roll_back(
    app: &App,
    who: &str,
    area: &str,
    reason: &str,
) -> Result<RolledBack, InstallError> {
    if let Some(trial) = stop_canary(app, who, area, reason).await? {
        return Ok(RolledBack::Trial(trial));
    }
    let Some(previous) = pointer(app, area).await?.and_then(|at| at.previous) else {
        let error = InstallError::NothingBefore { area: area.to_owned() };
        return Err(Trail::new(app, who, area, None).refuse(error).await);
    };
    let wish = Wish {
        area,
        digest: Some(&previous),
        answered: None,
        step: Step::RolledBack,
        why: Some(reason),
        force: None,
    };
    let trail = Trail::new(app, who, area, Some(&previous));
    let ready = match make_ready(app, wish).await {
        Ok(ready) => ready,
        Err(error) => return Err(trail.refuse(error).await),
    };
    let _one_at_a_time = app.installing.lock().await;
    let at = pointer(app, area).await?;
    if at.as_ref().and_then(|at| at.previous.as_ref()) != Some(&previous) {
        return Err(trail.refuse(overtaken(area)).await);
    }
    match move_to(app, who, at.as_ref(), wish, ready, trail).await {
        Ok(change) => Ok(RolledBack::Live(change)),
        Err((trail, error)) => Err(trail.refuse(error).await),
    }
}

/// Ends the canary that runs, if one does. A shadow has done nothing that could
/// be taken back.
async fn stop_canary(
    app: &App,
    who: &str,
    area: &str,
    reason: &str,
) -> Result<Option<Trial>, InstallError> {
    let _one_at_a_time = app.installing.lock().await;
    if running(app, area).await?.is_some_and(|trial| trial.mode == Mode::Canary) {
        return stop(app, who, area, reason).await.map(Some);
    }
    Ok(None)
}

/// Takes an area out: from now on nothing answers at its routes. What it has
/// stored stays. Refused while other areas depend on it, unless it is forced.
///
/// # Errors
/// It is not live, or others depend on it.
pub async fn remove(
    app: &App,
    who: &str,
    area: &str,
    why: Option<&str>,
    force: bool,
) -> Result<Change, InstallError> {
    let trail = Trail::new(app, who, area, None);
    let kept = removed::keep_from_folder(app, who, area).await;
    let _one_at_a_time = app.installing.lock().await;
    let at = pointer(app, area).await?;
    let dependents = app.registry.snapshot().dependents(area);
    if !force && !dependents.is_empty() {
        let error = InstallError::DependedOn { area: area.to_owned(), dependents };
        return Err(trail.refuse(error).await);
    }
    let answered = kept.as_deref();
    let wish = Wish { area, digest: None, answered, step: Step::Removed, why, force: None };
    match move_to(app, who, at.as_ref(), wish, None, trail).await {
        Ok(change) => Ok(change),
        Err((trail, error)) => Err(trail.refuse(error).await),
    }
}

/// Where the pointer is to go, and what the audit log says of it.
#[derive(Clone, Copy)]
struct Wish<'a> {
    area: &'a str,
    digest: Option<&'a str>,
    /// Of a removal: what answered, where the pointer does not say it.
    answered: Option<&'a str>,
    step: Step,
    why: Option<&'a str>,
    /// Why it may break clients.
    force: Option<&'a str>,
}

/// The caller has `App::installing`. A refusal gives the trail back, so that
/// it can say so.
async fn move_to<'a>(
    app: &'a App,
    who: &str,
    at: Option<&Pointer>,
    wish: Wish<'_>,
    ready: Option<Arc<AreaVersion>>,
    mut trail: Trail<'a>,
) -> Result<Change, (Trail<'a>, InstallError)> {
    let before = at.and_then(|at| at.digest.clone());
    let why = wish.force.or(wish.why);
    trail.note(wish.step, why, Some(json!({"live": wish.digest, "before": before})));
    let moved = async {
        let plan = plan(app, at, wish, ready.as_deref()).await?;
        move_pointer(app, who, at, wish, &mut trail).await?;
        finish(app, wish.area, plan)
    };
    match moved.await {
        Ok(change) => Ok(change),
        Err(error) => {
            trail.forget();
            Err((trail, error))
        }
    }
}

/// The version that is to answer, where one is.
async fn make_ready(app: &App, wish: Wish<'_>) -> Result<Option<Arc<AreaVersion>>, InstallError> {
    let Some(found) = find(app, wish).await? else { return Ok(None) };
    let stage = found.stage;
    let candidate = follow::candidate(app, found).await?;
    let at = pointer(app, wish.area).await?;
    allow(app, at.as_ref(), wish, stage, candidate.manifest()).await?;
    ready::to_answer(app, candidate).await.map(Some)
}

async fn find(app: &App, wish: Wish<'_>) -> Result<Option<Deployment>, InstallError> {
    let Some(digest) = wish.digest else { return Ok(None) };
    let found = follow::version(app, wish.area, digest).await?;
    let unknown =
        || InstallError::NotKnown { area: wish.area.to_owned(), digest: digest.to_owned() };
    found.ok_or_else(unknown).map(Some)
}

/// Nothing, where an area is taken out that does not answer here anyway.
async fn plan(
    app: &App,
    at: Option<&Pointer>,
    wish: Wish<'_>,
    ready: Option<&AreaVersion>,
) -> Result<Option<Plan>, InstallError> {
    let (Some(version), Some(found)) = (ready, find(app, wish).await?) else {
        return match app.registry.plan_removal(wish.area) {
            Err(_) if at.is_some_and(|at| at.digest.is_some()) => Ok(None),
            plan => Ok(Some(plan?)),
        };
    };
    allow(app, at, wish, found.stage, &version.manifest).await?;
    Ok(Some(app.registry.plan_again(version)?))
}

/// Whether a version may go forward. What it is held against may have changed
/// since it was staged. Going back is always allowed: it is how operators get
/// out of trouble.
async fn allow(
    app: &App,
    at: Option<&Pointer>,
    wish: Wish<'_>,
    stage: Stage,
    manifest: &Manifest,
) -> Result<(), InstallError> {
    if wish.step != Step::Activated {
        return Ok(());
    }
    let checked = checks::check(app, at, manifest, wish.force).await?;
    if stage != Stage::AwaitingApproval || checked.asks.is_empty() {
        return Ok(());
    }
    Err(checks::needs_approval(manifest, wish.digest.unwrap_or_default(), &checked))
}

async fn move_pointer(
    app: &App,
    who: &str,
    at: Option<&Pointer>,
    wish: Wish<'_>,
    trail: &mut Trail<'_>,
) -> Result<(), InstallError> {
    let left = if wish.step == Step::Activated { Stage::Retired } else { Stage::Withdrawn };
    let Wish { area, digest, answered, .. } = wish;
    let moved = Moved { area, digest, answered, at: app.clock.now(), by: who };
    let revision = at.map_or(0, |at| at.revision);
    end_turns(app, area);
    let kept = async {
        let mut tx = app.store.begin(Access::WriteLocked).await?;
        deployments::point(&mut tx, &moved, revision, left).await?;
        trail.keep_with(&mut tx).await?;
        tx.commit().await
    };
    match kept.await {
        Err(store::Error::RunAgain) => Err(overtaken(wish.area)),
        kept => Ok(kept?),
    }
}

/// Lets this process do what the pointer now says.
fn finish(app: &App, area: &str, plan: Option<Plan>) -> Result<Change, InstallError> {
    let change = match plan {
        // Only who holds `App::installing` changes the registry.
        Some(plan) => app.registry.activate(plan).ok_or_else(|| overtaken(area))?,
        None => Change { area: area.to_owned(), before: None, now: None },
    };
    follow::settle(app, &change);
    Ok(change)
}

pub(super) async fn pointer(app: &App, area: &str) -> Result<Option<Pointer>, store::Error> {
    let mut connection = app.store.reader().await?;
    let pointer = deployments::pointer_of(&mut connection, area).await?;
    connection.release();
    Ok(pointer)
}
