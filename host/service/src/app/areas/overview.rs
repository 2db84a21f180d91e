//! Reads for operators: the areas, their versions, and the audit log.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::App;
use super::error::AreaActionError;
use super::state::DesiredArea;
use super::{folder_version, rows, selection};
use crate::registry::{AreaVersion, VersionOnTrial};
use assurance_core::domain::deployment::{
    AuditEntry, LivePointer, NodeAreaReport, NodeVersionState, StoredVersion, VersionStage,
};
use assurance_core::domain::trial::{Trial, TrialState};
use assurance_store::nodes::LiveNode;
use assurance_store::{self as store, audit, deployments, nodes};

/// State of one area in the database and on this node.
#[derive(Debug, Default)]
pub struct AreaOverview {
    /// Version of the area that runs on this node; `None` if its code is not
    /// loaded.
    pub running: Option<Arc<AreaVersion>>,
    /// Whether the version that runs on this node comes from the node's
    /// component folder.
    pub from_folder: bool,
    /// The area's row of `live_areas`, with its live version; `None` if there
    /// is none.
    pub pointer: Option<LivePointer>,
    /// Version that a rollback makes live.
    pub previous: Option<StoredVersion>,
    /// Digest of `previous`.
    rollback_target: Option<String>,
    /// The area's running trial, or its last one; `None` if there was none, or
    /// its version became live and is not live any more.
    pub trial: Option<Trial>,
    /// Version on trial on this node, with its statistics.
    pub on_trial: Option<Arc<VersionOnTrial>>,
    /// Versions that are staged, wait for approval, or are on trial, except the
    /// previous one.
    pub staged: Vec<StoredVersion>,
    /// Reports of the fleet's nodes about this area.
    pub nodes: Vec<NodeAreaReport>,
}

/// Returns every area that is or was live, or has a stored version, by name.
///
/// # Errors
/// The database is unavailable.
pub async fn overview(app: &App) -> Result<BTreeMap<String, AreaOverview>, store::Error> {
    let (_, desired) = rows::all(app).await?;
    let seen_since = app.clock.now().plus_ms(-rows::SHOWN_FOR_MS);
    let reading = rows::read(app, async |connection| {
        let versions = deployments::current(connection).await?;
        let reports = nodes::list(connection, seen_since).await?;
        Ok((versions, reports, nodes::alive(connection, seen_since).await?))
    });
    let (versions, reports, alive) = reading.await?;
    let mut areas: BTreeMap<String, AreaOverview> = BTreeMap::new();
    let snapshot = app.registry.snapshot();
    for version in snapshot.areas() {
        let area = areas.entry(version.manifest.name.clone()).or_default();
        area.from_folder = app.node.is_from_file(&version.manifest.name);
        area.running = version.is_loaded().then(|| Arc::clone(version));
        area.on_trial = snapshot.trial(&version.manifest.name).cloned();
    }
    for (name, desired) in desired {
        let running = app.node.running(&snapshot, &name);
        let area = areas.entry(name).or_default();
        area.rollback_target = desired.rollback_target(&running).map(str::to_owned);
        area.trial = last_trial(&desired).cloned();
        area.pointer = desired.pointer;
    }
    for version in versions {
        areas.entry(version.area.clone()).or_default().take(version);
    }
    for report in reports {
        areas.entry(report.area.clone()).or_default().nodes.push(report);
    }
    for (name, area) in &mut areas {
        area.expect_of(name, &alive);
    }
    Ok(areas)
}

/// Returns the area's running trial, or its last one, unless that ended because
/// its version became live, and the version is not live any more.
fn last_trial(desired: &DesiredArea) -> Option<&Trial> {
    let is_past = |trial: &Trial| {
        trial.state == TrialState::Promoted && desired.live() != Some(trial.digest.as_str())
    };
    desired.trial.as_ref().filter(|trial| !is_past(trial))
}

impl AreaOverview {
    /// Adds nodes that have not reported the area yet, with the state loading:
    /// a deployment is complete only when every node runs the live version.
    fn expect_of(&mut self, area: &str, alive: &[LiveNode]) {
        if self.pointer.as_ref().is_none_or(|pointer| pointer.digest.is_none()) {
            return;
        }
        for LiveNode { node, host, seen_at } in alive {
            if self.nodes.iter().all(|report| report.node != *node) {
                self.nodes.push(NodeAreaReport {
                    node: *node,
                    host: host.clone(),
                    area: area.to_owned(),
                    digest: None,
                    candidate: None,
                    state: NodeVersionState::Loading,
                    why: None,
                    seen_at: *seen_at,
                });
            }
        }
    }

    fn take(&mut self, version: StoredVersion) {
        use VersionStage::{Live, Retired, Withdrawn};
        if self.rollback_target.as_ref() == Some(&version.digest) {
            self.previous = Some(version);
        } else if !matches!(version.stage, Live | Retired | Withdrawn) {
            self.staged.push(version);
        }
    }
}

/// Returns at most `limit` stored versions of an area whose number is less than
/// `before`, newest first. If this node serves a version from its folder
/// instead of the version in the area's row, that version is shown as live, on
/// the first page also if it is not stored, and the row's version as retired.
///
/// # Errors
/// The database is unavailable.
pub async fn history(
    app: &App,
    area: &str,
    before: i64,
    limit: u32,
) -> Result<Vec<StoredVersion>, store::Error> {
    let stored = rows::read(app, async |connection| {
        deployments::history(connection, area, before, limit).await
    });
    let mut versions = stored.await?;
    let state = rows::area(app, area).await?;
    let Some(file) = state.running.newer_file(state.desired.pointer.as_ref()) else {
        return Ok(versions);
    };
    for version in &mut versions {
        if version.digest == file {
            version.stage = VersionStage::Live;
        } else if version.stage == VersionStage::Live {
            version.stage = VersionStage::Retired;
        }
    }
    if before == i64::MAX && rows::find(app, area, file).await?.is_none() {
        // The cursor of a page that ends with it begins the next page with the newest row.
        let number = versions.first().map_or(1, |newest| newest.number + 1);
        if let Some(version) = folder_version::unstored(app, area, number).await {
            versions.insert(0, version);
        }
    }
    Ok(versions)
}

/// Returns a version's manifest as JSON; without `named`, that of the version
/// in the registry.
///
/// # Errors
/// The version does not exist, or the database is unavailable.
pub async fn manifest(
    app: &App,
    area: &str,
    named: Option<&str>,
) -> Result<String, AreaActionError> {
    let digest = match named {
        Some(named) => Some(selection::digest_of(app, area, named).await?),
        None => None,
    };
    let digest = digest.as_deref();
    let live = app.registry.snapshot();
    let live = live.area(area).filter(|live| digest.is_none_or(|digest| live.digest == digest));
    if let Some(live) = live {
        let text = serde_json::to_string(&live.manifest);
        return Ok(text.map_err(|error| assurance_runtime::LoadError::Host(error.into()))?);
    }
    let Some(digest) = digest else {
        return Err(crate::registry::RegistryError::NotLive(area.to_owned()).into());
    };
    let found = rows::manifest_text(app, area, digest).await?;
    found.ok_or_else(|| AreaActionError::not_known(area, digest))
}

/// Returns at most `limit` entries of the audit log whose id is less than
/// `before`, newest first.
///
/// # Errors
/// The database is unavailable.
pub async fn audit_log(
    app: &App,
    area: Option<&str>,
    before: i64,
    limit: u32,
) -> Result<Vec<AuditEntry>, store::Error> {
    rows::read(app, async |connection| audit::list(connection, area, before, limit).await).await
}
