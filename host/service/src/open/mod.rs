//! Opens the resources that `serve` and other commands share: keys, store and users.

mod master_key;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

use assurance_core::config::{self, Config, credentials, files};
use assurance_core::domain::time::Clock;
use assurance_core::secrets::Keys;
use assurance_identity::{IdentityService, Settings};
use assurance_store::blobs::{BlobStoreLocation, Bucket};
use assurance_store::{self as store, Store};

pub use master_key::configured_keys;

/// Opened resources that commands and the service share.
#[derive(Clone, Debug)]
pub struct OpenedResources {
    /// Database and blob store.
    pub store: Store,
    /// Keys derived from the master key.
    pub keys: Arc<Keys>,
    /// Users, sessions and memberships.
    pub identity: IdentityService,
    /// Source of the current time.
    pub clock: Clock,
}

/// Opens keys, store and user management for a command. Does not migrate the database of an older
/// release, whose service may be running.
///
/// # Errors
/// Names the resource that could not be opened and how to fix it.
pub async fn open(config: &Config) -> anyhow::Result<OpenedResources> {
    open_with(config, async |settings| Store::open_without_upgrade(&settings).await).await
}

/// Opens keys, store and user management for the service, and migrates the database.
///
/// # Errors
/// Names the resource that could not be opened and how to fix it.
pub async fn open_and_migrate(config: &Config) -> anyhow::Result<OpenedResources> {
    open_with(config, async |settings| Store::open(&settings).await).await
}

async fn open_with(
    config: &Config,
    open_store: impl AsyncFnOnce(store::Settings) -> Result<Store, store::Error>,
) -> anyhow::Result<OpenedResources> {
    // Every file that is created from here on may contain customer data.
    rustix::process::umask(rustix::fs::Mode::from_bits_retain(0o077));
    files::private_dir(&config.data_dir)?;
    // The blob store's bucket is accessed over TLS.
    assurance_outside::egress::install_tls_provider();
    let store = open_store(store::Settings {
        url: config.database_url(),
        max_connections: config.database.max_connections,
        acquire_timeout_ms: config.database.acquire_timeout_ms,
        timeouts: timeouts(&config.database),
        blobs: place_of_blobs(config)?,
    })
    .await?;
    let clock = store::health::clock(&store).await?;
    let keys = Arc::new(master_key::keys(config, &store, &clock).await?);
    let identity = IdentityService::new(
        store.clone(),
        Arc::clone(&keys),
        clock.clone(),
        Settings::from(config),
    );
    Ok(OpenedResources { store, keys, identity, clock })
}

fn timeouts(database: &config::DatabaseConfig) -> store::PostgresSessionTimeouts {
    store::PostgresSessionTimeouts {
        statement_ms: database.statement_timeout_ms,
        lock_ms: database.lock_timeout_ms,
        idle_in_transaction_ms: database.idle_in_transaction_timeout_ms,
        unreachable_ms: database.unreachable_timeout_ms,
    }
}

/// Returns the configured location of the blob store: a folder, or a bucket with its credentials.
///
/// # Errors
/// The endpoint is not a URL, or the credentials cannot be read.
pub fn place_of_blobs(config: &Config) -> anyhow::Result<BlobStoreLocation> {
    let blobs = &config.blobs;
    let Some((name, prefix)) = blobs.bucket() else {
        return Ok(BlobStoreLocation::Folder(config.blobs_dir()));
    };
    Ok(BlobStoreLocation::Bucket(Box::new(Bucket {
        name: name.to_owned(),
        prefix: prefix.to_owned(),
        endpoint: blobs.endpoint.as_deref().map(url::Url::parse).transpose()?,
        region: blobs.region.clone(),
        virtual_host: blobs.virtual_host,
        allow_http: blobs.allow_http,
        key: blobs.credentials_file.as_deref().map(credentials::read).transpose()?,
    })))
}

/// Returns the operators' bearer token from this file. Creates the file with a random token if it
/// is missing.
///
/// # Errors
/// The file cannot be used, or other users can read it.
pub fn operators_token(file: &Path) -> anyhow::Result<Zeroizing<String>> {
    let content = files::read_or_create_private(file, || {
        let random: Zeroizing<[u8; 32]> = Zeroizing::new(rand::random());
        Zeroizing::new(format!("{}\n", URL_SAFE_NO_PAD.encode(*random)).into_bytes())
    })?;
    let token = std::str::from_utf8(&content).unwrap_or_default().trim();
    if token.len() < 32 {
        anyhow::bail!(
            "{}: the operators' token has fewer than 32 characters; delete the file and start \
            again to create a new one",
            file.display()
        );
    }
    Ok(Zeroizing::new(token.to_owned()))
}
