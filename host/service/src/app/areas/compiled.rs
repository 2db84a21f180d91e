//! A fleet compiles a version once: the node that receives it stores the machine
//! code with the component, and the others load that. A node that cannot read
//! it, or has another processor, compiles the component itself.
//!
//! Invariant: machine code is loaded only under a MAC that the installation's
//! master key makes; what the blob store holds is not trusted.

use super::super::App;
use assurance_runtime::CodeCache;
use assurance_store::Backend;

/// Maximum size of machine code, as a multiple of the component's size; larger objects in the blob
/// store are not read.
const MAX_TIMES_AS_LARGE: u64 = 32;

/// Stores the machine code of a version in the blob store, for the other nodes of the fleet.
pub(super) async fn share(app: &App, digest: &str) {
    let Some(cache) = shared_cache(app) else { return };
    if let Err(error) = try_share(app, cache, digest).await {
        tracing::warn!(
            %error,
            area.digest = digest,
            "cannot store machine code; other nodes will compile the version"
        );
    }
}

async fn try_share(app: &App, cache: &CodeCache, digest: &str) -> anyhow::Result<()> {
    let (blobs, name) = (app.store.blobs(), cache.name(digest));
    if blobs.has_compiled(&name).await? {
        return Ok(());
    }
    let (cache, digest) = (cache.clone(), digest.to_owned());
    let sealed = tokio::task::spawn_blocking(move || cache.read(&digest)).await??;
    Ok(blobs.write_compiled(&name, sealed).await?)
}

/// Copies machine code that another node stored in the blob store into this node's cache.
/// `component_bytes` is the size of the component.
pub(super) async fn fetch(app: &App, digest: &str, component_bytes: u64) {
    let Some(cache) = shared_cache(app).filter(|cache| !cache.has(digest)) else { return };
    if let Err(error) = try_fetch(app, cache, digest, component_bytes).await {
        tracing::warn!(%error, area.digest = digest, "another node's machine code is not used");
    }
}

async fn try_fetch(
    app: &App,
    cache: &CodeCache,
    digest: &str,
    component_bytes: u64,
) -> anyhow::Result<()> {
    let max = component_bytes.saturating_mul(MAX_TIMES_AS_LARGE);
    let found = app.store.blobs().read_compiled(&cache.name(digest), max).await?;
    let Some(sealed) = found else { return Ok(()) };
    let (cache, digest) = (cache.clone(), digest.to_owned());
    tokio::task::spawn_blocking(move || cache.insert_sealed(&digest, &sealed)).await?
}

/// Returns this node's cache of machine code if other nodes may share its content, else `None`:
/// only nodes with one PostgreSQL database form a fleet.
fn shared_cache(app: &App) -> Option<&CodeCache> {
    app.runtime.cache().filter(|_| app.store.backend() == Backend::Postgres)
}
