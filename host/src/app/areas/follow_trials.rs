//! Every node tries what the database's rows say. One that cannot bring a
//! candidate to life serves the live version to everybody, says so, and tries
//! again.

use super::super::App;
use super::trials::enter;
use super::{InstallError, follow, ready};
use crate::domain::trial::{Trial, TrialState};
use crate::store::{self, trials};

/// Ends the trials that the rows do not know any more: at once, whatever else
/// takes its time. Answers those that run, and whether any was ended.
pub(super) async fn end(app: &App) -> Result<(Vec<Trial>, bool), store::Error> {
    let asked = app.store.in_time(async {
        let mut connection = app.store.reader().await?;
        let trials = trials::list(&mut connection).await?;
        connection.release();
        Ok(trials)
    });
    let mut running = asked.await?;
    running.retain(|trial| trial.state == TrialState::Running);
    let snapshot = app.registry.snapshot();
    let over = |name: &String| !running.iter().any(|trial| trial.area == *name);
    let over: Vec<String> =
        snapshot.trials().map(|on_trial| on_trial.trial.area.clone()).filter(over).collect();
    for area in &over {
        let _one_at_a_time = app.installing.lock().await;
        let ended = app.registry.plan_trial_end(area).map_err(InstallError::from);
        if let Err(error) = ended.and_then(|plan| enter(app, area, plan)) {
            tracing::error!(area.name = area, %error, "a trial does not end here");
        }
    }
    Ok((running, !over.is_empty()))
}

/// Begins those that run and do not here. Answers whether anything was done
/// or failed.
pub(super) async fn begin(app: &App, mut running: Vec<Trial>) -> bool {
    let snapshot = app.registry.snapshot();
    running.retain(|trial| app.node.is_behind_trial(&snapshot, trial));
    for trial in &running {
        if let Err(error) = begin_one(app, trial).await {
            let (area, digest) = (&trial.area, &trial.digest);
            tracing::error!(area.name = area, candidate = digest, %error, "not tried here");
            app.node.trial_failed(area, digest, error.to_string());
        }
    }
    !running.is_empty()
}

pub(super) async fn begin_one(app: &App, trial: &Trial) -> Result<(), InstallError> {
    let (area, digest) = (trial.area.clone(), trial.digest.clone());
    let found = follow::version(app, &area, &digest).await?;
    let candidate =
        follow::candidate(app, found.ok_or(InstallError::NotKnown { area, digest })?).await?;
    let version = ready::to_be_tried(app, trial, candidate).await?;
    let _one_at_a_time = app.installing.lock().await;
    // An operator's call may have begun it here while this one waited; begun
    // again, it would forget what it has seen.
    let behind = app.node.is_behind_trial(&app.registry.snapshot(), trial);
    if !behind || !is_current(app, trial).await? {
        return Ok(());
    }
    enter(app, &trial.area, app.registry.plan_trial_again(trial, &version)?)
}

/// Whether the row is still as it was read; the next look sees the change.
async fn is_current(app: &App, trial: &Trial) -> Result<bool, store::Error> {
    let mut connection = app.store.reader().await?;
    let now = trials::of(&mut connection, &trial.area).await?;
    connection.release();
    Ok(now.as_ref() == Some(trial))
}
