//! Loads versions: machine code, schemas, indexes. This slow work is done
//! before `App::installing` is locked.

use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::super::App;
use super::error::AreaActionError;
use super::install::with_writers_ended;
use super::{compiled, rows, trust};
use crate::registry::AreaVersion;
use assurance_core::domain::deployment::StoredVersion;
use assurance_core::domain::manifest::Manifest;
use assurance_core::domain::trial::TrialMode;
use assurance_runtime::{LoadError, LoadedArea};
use assurance_store::{
    self as store, AccessibleCollection,
    collections::{self, LiveOrCandidate},
};
use assurance_work::CallError;

/// Loads a component whose signature was verified: compiles it, checks its
/// imports against the operator's grants, and reads its manifest.
pub(super) async fn component(app: &App, component: Arc<[u8]>) -> Result<LoadedArea, LoadError> {
    let loaded = app.runtime.load(component, |area| app.config.areas.granted(area)).await?;
    if let Some(took) = loaded.compiled_in {
        let (name, took_ms) = (&loaded.manifest.name, took.as_millis());
        tracing::info!(area.name = name, took_ms, "area compiled; machine code cached");
    }
    Ok(loaded)
}

/// Loads a stored version of an area from memory, from cached machine code, or from the component
/// in the blob store. Verifies the signature again unless the version is in memory.
pub(super) async fn stored(
    app: &App,
    area: &str,
    digest: &str,
) -> Result<Arc<AreaVersion>, AreaActionError> {
    let version = rows::version(app, area, digest).await?;
    if let Some(warm) = app.node.warm(area, digest) {
        return Ok(warm);
    }
    let signature = trust::stored(version.publisher.as_deref(), version.signature.as_deref());
    let publisher = trust::publisher_of(&app.config, digest, signature.as_ref())?;
    publisher.may_publish(area)?;
    compiled::fetch(app, digest, version.size).await;
    let grants = |area: &str| app.config.areas.granted(area);
    let loaded = match app.runtime.load_cached(digest, grants).await? {
        Some(loaded) => loaded,
        None => from_blob_store(app, version).await?,
    };
    let unknown = || AreaActionError::not_known(area, digest);
    let checked = rows::manifest(app, area, digest).await?.ok_or_else(unknown)?;
    same_manifest(&checked, &loaded.manifest)?;
    compile(app, loaded).await
}

/// Refuses a version whose `describe` returns another manifest than the stored one, which was
/// checked when the version was deployed. Both are read from JSON by this release, so that they
/// have the same defaults.
fn same_manifest(checked: &Manifest, described: &Manifest) -> Result<(), LoadError> {
    let described = serde_json::to_string(described)
        .and_then(|text| serde_json::from_str::<Manifest>(&text))
        .map_err(|error| LoadError::Host(error.into()))?;
    if *checked == described {
        return Ok(());
    }
    let why = "`describe` returned another manifest than when the version was deployed; it must \
               always return the same";
    Err(LoadError::Describe(CallError::Contract(why.to_owned())))
}

async fn from_blob_store(app: &App, version: StoredVersion) -> Result<LoadedArea, AreaActionError> {
    let bytes = match app.store.blobs().read_component(&version.object).await {
        Err(store::Error::NotFound) => {
            let (area, object) = (version.area, version.object);
            return Err(AreaActionError::Missing { area, object });
        }
        bytes => bytes?,
    };
    // Checks the digest before the bytes are parsed.
    let found = digest_of(bytes.clone()).await?;
    if found != version.digest {
        let (area, digest) = (version.area, version.digest);
        return Err(AreaActionError::Damaged { area, digest, found });
    }
    Ok(component(app, Arc::from(&bytes[..])).await?)
}

/// Compiles the routes and schemas of a loaded version on a blocking thread.
pub(super) async fn compile(
    app: &App,
    loaded: LoadedArea,
) -> Result<Arc<AreaVersion>, AreaActionError> {
    let registry = Arc::clone(&app.registry);
    let compiling = tokio::task::spawn_blocking(move || registry.compile(loaded));
    Ok(compiling.await.map_err(|error| LoadError::Host(error.into()))??)
}

/// Creates the database indexes of a version before it gets traffic.
pub(super) async fn ensure_collections(
    app: &App,
    version: &AreaVersion,
) -> Result<(), AreaActionError> {
    ensure(app, version, &own_collections(version)).await
}

/// Returns the collections of the version's own area, which it may write.
pub(super) fn own_collections(version: &AreaVersion) -> Vec<AccessibleCollection> {
    version.scope.collections.values().filter(|collection| collection.own).cloned().collect()
}

async fn ensure(
    app: &App,
    version: &AreaVersion,
    collections: &[AccessibleCollection],
) -> Result<(), AreaActionError> {
    let creating = collections::ensure_for(&app.store, collections, LiveOrCandidate::Candidate);
    let created = with_writers_ended(app, &version.manifest.name, creating).await;
    created
        .map_err(|source| AreaActionError::Indexes { area: version.manifest.name.clone(), source })
}

/// Creates the database indexes of a version on trial. A shadow gets no unique index: it stores
/// nothing itself, and the index would refuse documents of the live version.
pub(super) async fn ensure_trial_collections(
    app: &App,
    version: &AreaVersion,
    mode: TrialMode,
) -> Result<(), AreaActionError> {
    let mut own = own_collections(version);
    if mode == TrialMode::Shadow {
        own.iter_mut().for_each(|collection| collection.indexes.retain(|index| !index.unique));
    }
    ensure(app, version, &own).await
}

/// Returns the SHA-256 of a component in hex, computed on a blocking thread.
pub(super) async fn digest_of(component: Bytes) -> Result<String, AreaActionError> {
    let digest = tokio::task::spawn_blocking(move || hex::encode(Sha256::digest(&component))).await;
    Ok(digest.map_err(|error| LoadError::Host(error.into()))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use assurance_contract::fixtures::manifest;
    use assurance_core::domain::manifest::Capability;

    #[test]
    fn a_version_runs_only_with_the_manifest_that_was_checked() {
        let checked = manifest("notes", vec![]);
        let mut stored = serde_json::to_value(&checked).unwrap();
        stored["unknown"] = serde_json::json!("written by a newer release");
        let stored: Manifest = serde_json::from_value(stored).unwrap();
        let verdict = |described| same_manifest(&stored, &described).is_ok();
        assert!(verdict(checked.clone()));
        assert!(!verdict(Manifest { name: "support".into(), ..checked.clone() }));
        assert!(!verdict(Manifest { capabilities: vec![Capability::Egress], ..checked.clone() }));
    }
}
