//! Compares the canaries with the live versions, by the calls on this node.
//! Ends a canary that is worse, on all nodes.

use std::time::Duration;

use futures::future::select_all;
use metrics::counter;
use serde_json::json;

use super::super::App;
use super::error::AreaActionError;
use super::execute::{AreaActionRequest, AreaChange, execute};
use super::plan::AreaAction;
use super::verdict::verdict;
use crate::registry::VersionOnTrial;
use assurance_core::domain::trial::{TrialMode, TrialState};

/// Actor in the audit log when the host ends a canary.
const WHO: &str = "assurance";

/// Interval between two comparisons of the canaries with the live versions
/// while no call of a canary fails. It determines how fast a slow canary is
/// found.
const INTERVAL: Duration = Duration::from_secs(1);

/// Compares the canaries with the live versions, and ends those that are worse,
/// until the future is dropped.
pub async fn watch_canaries(app: App) {
    loop {
        wait(&app).await;
        let snapshot = app.registry.snapshot();
        for on_trial in snapshot.trials().filter(|one| one.trial.mode == TrialMode::Canary) {
            let Some(worse) = verdict(&app.config.areas.canary, &on_trial.figures) else {
                continue;
            };
            if let Err(error) = roll_back(&app, on_trial, &worse).await {
                let area = &on_trial.trial.area;
                tracing::error!(area.name = area, %worse, %error, "cannot end a canary");
            }
        }
    }
}

/// Waits until the next comparison of canaries is due: for the interval, or
/// until a call of a canary fails.
async fn wait(app: &App) {
    let snapshot = app.registry.snapshot();
    let failures: Vec<_> =
        snapshot.trials().map(|one| Box::pin(one.figures.failure.notified())).collect();
    if failures.is_empty() {
        return tokio::time::sleep(INTERVAL).await;
    }
    let _ = tokio::time::timeout(INTERVAL, select_all(failures)).await;
}

/// Ends a canary that is worse than the live version, unless another node has
/// ended it.
async fn roll_back(app: &App, on_trial: &VersionOnTrial, why: &str) -> Result<(), AreaActionError> {
    let trial = &on_trial.trial;
    let (candidate, live) = (on_trial.figures.candidate.stats(), on_trial.figures.live.stats());
    let figures = json!({"node": app.node.id, "candidate": candidate, "live": live});
    let event = AreaAction::EndTrial { trial: trial.clone(), end: TrialState::RolledBack };
    let (area, figures) = (trial.area.as_str(), Some(figures));
    let decision = AreaActionRequest { area, event, who: WHO, why: Some(why), figures };
    match execute(app, &decision).await {
        Ok(Some(AreaChange::Trial(_))) => {}
        Ok(_) | Err(AreaActionError::Overtaken(_)) => return Ok(()),
        Err(error) => return Err(error),
    }
    counter!("assurance_canary_rollbacks_total", "area" => trial.area.clone()).increment(1);
    tracing::warn!(
        event = "area.canary_rolled_back",
        area.name = area,
        area.digest = trial.digest,
        why,
        "a canary was worse than the live version and is withdrawn"
    );
    Ok(())
}
