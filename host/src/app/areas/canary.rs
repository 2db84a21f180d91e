//! Each node judges the canaries by its own figures, and ends one for the
//! whole fleet that is worse than the live version.

use std::time::Duration;

use futures::future::select_all;
use metrics::counter;
use serde_json::json;

use super::super::App;
use super::InstallError;
use super::trail::Trail;
use super::trials::end;
use super::verdict::{Worse, verdict};
use crate::domain::deployment::Step;
use crate::domain::trial::{Mode, TrialState};
use crate::registry::OnTrial;

/// Who ends a canary that is worse, in the audit log.
const WHO: &str = "assurance";

/// Between two looks, where no call fails: often enough to see that a canary
/// is slow.
const LOOK: Duration = Duration::from_secs(1);

/// Judges for as long as it is polled.
pub async fn judge(app: App) {
    loop {
        wait(&app).await;
        let snapshot = app.registry.snapshot();
        for on_trial in snapshot.trials().filter(|one| one.trial.mode == Mode::Canary) {
            let Some(worse) = verdict(&app.config.areas.canary, &on_trial.figures) else {
                continue;
            };
            if let Err(error) = roll_back(&app, on_trial, &worse).await {
                let area = &on_trial.trial.area;
                tracing::error!(area.name = area, %worse, %error, "a canary does not end");
            }
        }
    }
}

/// A while, or until a canary fails.
async fn wait(app: &App) {
    let snapshot = app.registry.snapshot();
    let doubts: Vec<_> = snapshot.trials().map(|one| Box::pin(one.figures.doubted())).collect();
    if doubts.is_empty() {
        return tokio::time::sleep(LOOK).await;
    }
    let _ = tokio::time::timeout(LOOK, select_all(doubts)).await;
}

/// Ends the trial, unless another node has.
async fn roll_back(app: &App, on_trial: &OnTrial, worse: &Worse) -> Result<(), InstallError> {
    let trial = &on_trial.trial;
    let _one_at_a_time = app.installing.lock().await;
    let why = worse.to_string();
    let mut trail = Trail::new(app, WHO, &trial.area, Some(&trial.digest));
    let (candidate, live) = (on_trial.figures.candidate.told(), on_trial.figures.live.told());
    let changed = json!({"node": app.node.id(), "candidate": candidate, "live": live});
    trail.note(Step::CanaryRolledBack, Some(&why), Some(changed));
    if end(app, trial, TrialState::RolledBack, &why, trail).await? {
        counter!("assurance_canary_rollbacks_total", "area" => trial.area.clone()).increment(1);
        tracing::warn!(
            event = "area.canary_rolled_back",
            area.name = trial.area,
            area.digest = trial.digest,
            why,
            "a canary was worse than the live version and is withdrawn"
        );
    }
    Ok(())
}
