//! What operators read: the areas and where they stand, the versions they
//! had, and who did what.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::App;
use super::InstallError;
use crate::domain::deployment::{AuditLine, Deployment, NodeReport, NodeState, Pointer, Stage};
use crate::domain::trial::Trial;
use crate::registry::{AreaVersion, OnTrial};
use crate::store::nodes::LiveNode;
use crate::store::{self, audit, deployments, nodes, trials};

/// A node that was not seen for so long is not shown.
const SHOWN_FOR_MS: i64 = 15_000;

/// One area, as this process and the database know it.
#[derive(Debug, Default)]
pub struct Overview {
    /// What answers at this node.
    pub running: Option<Arc<AreaVersion>>,
    /// It answers from this node's folder.
    pub from_folder: bool,
    /// What operators have decided.
    pub pointer: Option<Pointer>,
    /// What a rollback brings.
    pub previous: Option<Deployment>,
    /// What is on trial, or was last.
    pub trial: Option<Trial>,
    /// What is tried at this node.
    pub on_trial: Option<Arc<OnTrial>>,
    /// What waits.
    pub staged: Vec<Deployment>,
    /// What each node says.
    pub nodes: Vec<NodeReport>,
}

/// Every area that is live, was, or waits, by name.
///
/// # Errors
/// The database is away.
pub async fn overview(app: &App) -> Result<BTreeMap<String, Overview>, store::Error> {
    let mut connection = app.store.reader().await?;
    let pointers = deployments::pointers(&mut connection).await?;
    let versions = deployments::current(&mut connection).await?;
    let seen_since = app.clock.now().plus_ms(-SHOWN_FOR_MS);
    let reports = nodes::list(&mut connection, seen_since).await?;
    let alive = nodes::alive(&mut connection, seen_since).await?;
    let trials = trials::list(&mut connection).await?;
    connection.release();
    let mut areas: BTreeMap<String, Overview> = BTreeMap::new();
    let snapshot = app.registry.snapshot();
    for area in snapshot.areas() {
        let name = area.manifest.name.clone();
        let from_folder = app.node.is_from_file(&name);
        let running = area.is_loaded().then(|| Arc::clone(area));
        let on_trial = snapshot.trial(&name).cloned();
        areas.insert(name, Overview { running, from_folder, on_trial, ..Overview::default() });
    }
    for trial in trials {
        let area = areas.entry(trial.area.clone()).or_default();
        area.trial = Some(trial);
    }
    for pointer in pointers {
        let area = areas.entry(pointer.area.clone()).or_default();
        area.pointer = Some(pointer);
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

impl Overview {
    /// Lists the nodes that have yet to report a live version: a deployment is
    /// complete only when every node has it.
    fn expect_of(&mut self, area: &str, alive: &[LiveNode]) {
        if self.pointer.as_ref().is_none_or(|pointer| pointer.digest.is_none()) {
            return;
        }
        for LiveNode { node, host, seen_at } in alive {
            if self.nodes.iter().all(|report| report.node != *node) {
                self.nodes.push(NodeReport {
                    node: *node,
                    host: host.clone(),
                    area: area.to_owned(),
                    digest: None,
                    candidate: None,
                    state: NodeState::Loading,
                    why: None,
                    seen_at: *seen_at,
                });
            }
        }
    }

    fn take(&mut self, version: Deployment) {
        let previous = self.pointer.as_ref().and_then(|pointer| pointer.previous.as_ref());
        if previous == Some(&version.digest) {
            self.previous = Some(version);
        } else if version.stage != Stage::Live {
            self.staged.push(version);
        }
    }
}

/// An area's versions received before a number, newest first.
///
/// # Errors
/// The database is away.
pub async fn history(
    app: &App,
    area: &str,
    before: i64,
    limit: u32,
) -> Result<Vec<Deployment>, store::Error> {
    let mut connection = app.store.reader().await?;
    let versions = deployments::history(&mut connection, area, before, limit).await?;
    connection.release();
    Ok(versions)
}

/// What a version said it is, as JSON; the one that answers here, where none
/// is named.
///
/// # Errors
/// There is no such version, or the database is away.
pub async fn manifest(app: &App, area: &str, digest: Option<&str>) -> Result<String, InstallError> {
    let live = app.registry.snapshot();
    let live = live.area(area).filter(|live| digest.is_none_or(|digest| live.digest == digest));
    if let Some(live) = live {
        let text = serde_json::to_string(&live.manifest);
        return Ok(text.map_err(|error| crate::runtime::LoadError::Host(error.into()))?);
    }
    let Some(digest) = digest else {
        return Err(crate::registry::Refusal::NotLive(area.to_owned()).into());
    };
    let mut connection = app.store.reader().await?;
    let found = deployments::manifest(&mut connection, area, digest).await?;
    connection.release();
    let unknown = || InstallError::NotKnown { area: area.to_owned(), digest: digest.to_owned() };
    found.ok_or_else(unknown)
}

/// The lines of the audit log before an id, newest first.
///
/// # Errors
/// The database is away.
pub async fn audit_log(
    app: &App,
    area: Option<&str>,
    before: i64,
    limit: u32,
) -> Result<Vec<AuditLine>, store::Error> {
    let mut connection = app.store.reader().await?;
    let lines = audit::list(&mut connection, area, before, limit).await?;
    connection.release();
    Ok(lines)
}
