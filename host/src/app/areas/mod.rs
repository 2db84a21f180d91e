//! Versions of areas: how one comes to answer, goes back, and goes.
//!
//! There are two sources. The database holds what operators have deployed:
//! every node follows its pointers. A folder holds what a developer builds.
//! Of an area that is in both, **the newer one answers**: a file that was
//! written after the pointer was last moved, or else what the pointer says.
//!
//! Invariant: the live areas of this process change only under
//! `App::installing`.

mod approve;
mod canary;
mod checks;
mod compiled;
mod deploy;
mod error;
mod fence;
mod follow;
mod follow_trials;
mod from_folder;
mod node;
mod overview;
mod ready;
mod rehearsal;
mod removed;
mod switch;
#[cfg(test)]
mod tests;
mod trail;
mod trials;
mod trust;
mod unloaded;
mod verdict;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub use approve::approve;
pub use canary::judge;
pub use checks::Incompatible;
pub use deploy::{CameTo, Deployed, Received, Then, deploy};
pub use error::InstallError;
pub use fence::Closed;
pub use follow::{catch_up, follow, sign_off};
pub use node::Node;
pub use overview::{Overview, audit_log, history, manifest, overview};
pub use switch::{Activation, RolledBack, activate, remove, roll_back};
pub use trials::{TrialWish, begin_trial, stop_trial};
pub use trust::{Distrust, Signature};

use super::App;
use crate::registry::{AreaVersion, Change};
use crate::runtime::{LoadError, Loaded};
use crate::store;
use crate::work::EndCalls;

/// Loads a component that somebody vouches for: compiled, its imports granted,
/// its manifest read.
///
/// # Errors
/// It is not one this host can run.
pub async fn load(app: &App, component: Arc<[u8]>) -> Result<Loaded, LoadError> {
    let loaded = app.runtime.load(component, |area| app.config.areas.granted(area)).await?;
    if let Some(took) = loaded.compiled_in {
        let (name, took_ms) = (&loaded.manifest.name, took.as_millis());
        tracing::info!(area.name = name, took_ms, "area compiled, and kept for the next start");
    }
    Ok((app.code_of)(loaded))
}

/// The same of a component that was compiled before, whose bytes nobody needs
/// to read; nothing, where somebody does.
async fn load_kept(app: &App, digest: &str) -> Result<Option<Loaded>, LoadError> {
    let loaded = app.runtime.load_kept(digest, |area| app.config.areas.granted(area)).await?;
    Ok(loaded.map(app.code_of))
}

/// The indexes are there before the version that needs them.
async fn ensure_indexes(app: &App, version: &AreaVersion) -> Result<(), InstallError> {
    let own: Vec<_> = version.scope.collections.values().filter(|c| c.own).cloned().collect();
    let made = store::indexes::ensure_indexes(&app.store, &own).await;
    made.map_err(|source| InstallError::Indexes { area: version.manifest.name.clone(), source })
}

/// Ends the area's calls here that keep others from writing, so that an
/// operator's change need not wait for them.
fn end_turns(app: &App, area: &str) {
    let live = app.registry.snapshot();
    let tried = live.trial(area).map(|trial| &trial.version);
    for version in live.running(area).into_iter().chain(tried) {
        version.code.end_calls(EndCalls::HoldingTheTurn);
    }
}

/// How long the calls of a version go on that was replaced or removed.
const LAST_CALLS: Duration = Duration::from_millis(1_500);

/// Ends the calls of a version that was replaced or removed, unless it is in
/// service again by then.
fn end_last_calls(app: &App, version: &Arc<AreaVersion>) {
    let (app, version, replaced) = (app.clone(), Arc::clone(version), Instant::now());
    tokio::spawn(async move {
        tokio::time::sleep(LAST_CALLS).await;
        let (live, name) = (app.registry.snapshot(), &version.manifest.name);
        let tried = live.trial(name).map(|trial| &trial.version);
        let mut serving = live.area(name).into_iter().chain(tried);
        if !serving.any(|serving| serving.digest == version.digest) {
            version.code.end_calls(EndCalls::BegunBefore(replaced));
        }
    });
}

/// Tells the log, and the other nodes by this one's next report.
fn announce(app: &App, change: &Change) {
    app.node.changed();
    let version = |area: &Arc<AreaVersion>| match area.is_loaded() {
        true => area.manifest.version.to_string(),
        false => format!("{}, not loaded", area.manifest.version),
    };
    let digest = change.now.as_ref().map(|area| area.digest.as_str());
    tracing::info!(
        area.name = change.area,
        area.digest = digest,
        before = change.before.as_ref().map(version),
        now = change.now.as_ref().map(version),
        "area changed"
    );
}
