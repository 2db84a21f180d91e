//! Reads the rows of areas. Every read has the timeout of `Store::in_time`,
//! because an unreachable database server may never respond.

use std::time::Instant;

use super::super::App;
use super::error::AreaActionError;
use super::state::{DesiredAndRunningArea, DesiredArea, DesiredAreas};
use super::trust::Signature;
use crate::registry::AreaVersion;
use assurance_core::domain::deployment::{StoredVersion, VersionStage};
use assurance_core::domain::manifest::Manifest;
use assurance_runtime::LoadError;
use assurance_store::{self as store, Connection, deployments, trials};

/// Age of the last heartbeat beyond which a node is not listed, in
/// milliseconds.
pub(super) const SHOWN_FOR_MS: i64 = 15_000;

/// Runs database reads on one connection, with the timeout of `Store::in_time`.
pub(super) async fn read<T>(
    app: &App,
    work: impl AsyncFnOnce(&mut Connection) -> Result<T, store::Error>,
) -> Result<T, store::Error> {
    app.store.in_time(app.store.read(work)).await
}

/// Reads one area's rows and its state on this node.
pub(super) async fn area(app: &App, area: &str) -> Result<DesiredAndRunningArea, store::Error> {
    let desired = read(app, async |connection| {
        let pointer = deployments::pointer_of(connection, area).await?;
        let trial = trials::of(connection, area).await?;
        Ok(DesiredArea { pointer, trial })
    });
    let desired = desired.await?;
    let live = app.registry.snapshot();
    let (running, dependents) = (app.node.running(&live, area), live.dependents(area));
    Ok(DesiredAndRunningArea {
        area: area.to_owned(),
        now: app.clock.now(),
        desired,
        running,
        dependents,
    })
}

/// Returns whether the area is or was live, or has a stored version.
pub(super) async fn exists(app: &App, name: &str) -> Result<bool, store::Error> {
    let state = area(app, name).await?;
    if state.desired.pointer.is_some() || state.running.digest.is_some() {
        return Ok(true);
    }
    let newest = read(app, async |c| deployments::history(c, name, i64::MAX, 1).await);
    Ok(!newest.await?.is_empty())
}

/// Reads the rows of all areas. Returns them with the time at which the query
/// was sent. Also measures the difference between this machine's clock and the
/// database's.
pub(super) async fn all(app: &App) -> Result<(Instant, DesiredAreas), store::Error> {
    let sent_at = Instant::now();
    let rows = read(app, async |connection| {
        store::health::measure(connection, &app.clock).await?;
        desired(connection).await
    });
    Ok((sent_at, rows.await?))
}

/// Reads the rows of `live_areas` and `area_trials`: the state that every node
/// should reach.
pub(super) async fn desired(connection: &mut Connection) -> Result<DesiredAreas, store::Error> {
    let (pointers, trials) =
        (deployments::pointers(connection).await?, trials::list(connection).await?);
    let mut areas = DesiredAreas::new();
    for pointer in pointers {
        let area = areas.entry(pointer.area.clone()).or_default();
        area.pointer = Some(pointer);
    }
    for trial in trials {
        let area = areas.entry(trial.area.clone()).or_default();
        area.trial = Some(trial);
    }
    Ok(areas)
}

/// Reads the database row of one version of an area. Returns an error if there
/// is none.
pub(super) async fn version(
    app: &App,
    area: &str,
    digest: &str,
) -> Result<StoredVersion, AreaActionError> {
    let found = find(app, area, digest).await?;
    found.ok_or_else(|| AreaActionError::not_known(area, digest))
}

/// Reads the database row of one version of an area; `None` if there is none.
pub(super) async fn find(
    app: &App,
    area: &str,
    digest: &str,
) -> Result<Option<StoredVersion>, store::Error> {
    read(app, async |connection| deployments::find(connection, area, digest).await).await
}

/// Reads a version's manifest; `None` if the version does not exist.
pub(super) async fn manifest(
    app: &App,
    area: &str,
    digest: &str,
) -> Result<Option<Manifest>, AreaActionError> {
    let text = manifest_text(app, area, digest).await?;
    let manifest = text.map(|text| serde_json::from_str(&text)).transpose();
    Ok(manifest.map_err(|error| LoadError::Host(error.into()))?)
}

/// Reads a version's manifest as JSON; `None` if the version does not exist.
pub(super) async fn manifest_text(
    app: &App,
    area: &str,
    digest: &str,
) -> Result<Option<String>, store::Error> {
    read(app, async |connection| deployments::manifest(connection, area, digest).await).await
}

/// Creates the database row of a new version of an area, and the version's
/// manifest as JSON.
pub(super) fn new_version(
    app: &App,
    who: &str,
    version: &AreaVersion,
    (object, size): (String, usize),
    signature: Option<&Signature>,
    stage: VersionStage,
) -> Result<(StoredVersion, String), AreaActionError> {
    let manifest =
        serde_json::to_string(&version.manifest).map_err(|error| LoadError::Host(error.into()))?;
    let row = StoredVersion {
        number: 0,
        area: version.manifest.name.clone(),
        digest: version.digest.clone(),
        version: version.manifest.version.to_string(),
        size: size as u64,
        object,
        publisher: signature.map(|signature| signature.publisher.clone()),
        signature: signature.map(Signature::bytes).transpose()?,
        stage,
        received_at: app.clock.now(),
        received_by: who.to_owned(),
        approved_at: None,
        approved_by: None,
        live_at: None,
    };
    Ok((row, manifest))
}
