//! Completes the search pairs of a live version; see `assurance_store::search`. The version before
//! may write documents without pairs: on this node until its last calls have ended, on another node
//! until that node changes, too.
//!
//! Invariant: pairs are recorded as complete only after no node reports another version.

use std::time::Duration;

use super::super::App;
use super::{load, rows};
use crate::registry::{AreaVersion, LiveVersionChange};
use assurance_core::domain::deployment::NodeAreaReport;
use assurance_store::collections::{LiveOrCandidate, ensure_for};
use assurance_store::{self as store, AccessibleCollection, Backend, nodes, search};

/// Time after a change of an area in which the calls of the replaced version have ended. A commit
/// that takes longer writes documents that a search finds after their next change.
const LAST_WRITES: Duration = Duration::from_secs(2);

/// Completes the search pairs of an area's live version in the background, after a change of the
/// area on this node. Does nothing on SQLite, and for an area without searched texts.
pub(super) fn complete_later(app: &App, change: &LiveVersionChange) {
    let Some(live) = change.now.clone().filter(|now| now.is_loaded()) else { return };
    let writers = change.before.iter().chain(&change.tried).chain(&change.now);
    let written: Vec<_> = writers.flat_map(|version| load::own_collections(version)).collect();
    let has_pairs = written.iter().any(|collection| !collection.searched.is_empty());
    if !has_pairs || app.store.backend() == Backend::Sqlite {
        return;
    }
    let app = app.clone();
    tokio::spawn(async move {
        while let Err(error) = complete(&app, &live, &written).await {
            let area = &live.manifest.name;
            tracing::warn!(area.name = area, %error, "cannot complete search pairs; retrying");
            if !is_live(&app, &live) {
                break;
            }
        }
    });
}

/// Creates the missing pairs of documents that other versions wrote, then records the pairs of the
/// live version as complete, unless another version is live by then.
///
/// `written` has the collections of each version that may have written on this node. Pairs that one
/// of them does not write are not recorded as complete any more, whichever version is live next.
async fn complete(
    app: &App,
    live: &AreaVersion,
    written: &[AccessibleCollection],
) -> Result<(), store::Error> {
    tokio::time::sleep(LAST_WRITES).await;
    let forgetting = app.store.write(async |c| search::forget_unwritten(c, written).await);
    app.store.in_time(forgetting).await?;
    let own = load::own_collections(live);
    if is_live(app, live) && another_runs(app, live).await? {
        // The other node may take long, or never change.
        ensure_for(&app.store, &own, LiveOrCandidate::Candidate).await?;
        while is_live(app, live) && another_runs(app, live).await? {
            tokio::time::sleep(LAST_WRITES).await;
        }
    }
    tokio::time::sleep(LAST_WRITES).await;
    if is_live(app, live) {
        ensure_for(&app.store, &own, LiveOrCandidate::Live).await?;
    }
    Ok(())
}

fn is_live(app: &App, version: &AreaVersion) -> bool {
    let live = app.registry.snapshot();
    live.area(&version.manifest.name).is_some_and(|now| now.digest == version.digest)
}

/// Returns whether a node reports to run another version of the area.
async fn another_runs(app: &App, live: &AreaVersion) -> Result<bool, store::Error> {
    let seen_since = app.clock.now().plus_ms(-rows::SHOWN_FOR_MS);
    let reports = rows::read(app, async |c| nodes::list(c, seen_since).await).await?;
    let is_other = |report: &NodeAreaReport| {
        report.area == live.manifest.name
            && report.digest.as_ref().is_some_and(|digest| *digest != live.digest)
    };
    Ok(reports.iter().any(is_other))
}
