//! Opens what serving and the other commands both need: the keys, the store,
//! the people.

mod master_key;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

use crate::config::{self, Config, credentials, files};
use crate::domain::time::Clock;
use crate::identity::{Identity, Settings};
use crate::secrets::Keys;
use crate::store::blobs::{Bucket, Place};
use crate::store::{self, Store};

/// What is open.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Documents, jobs, people.
    pub store: Store,
    /// Keys under the master key.
    pub keys: Arc<Keys>,
    /// People.
    pub identity: Identity,
    /// The time.
    pub clock: Clock,
}

/// Opens keys, store and people as configured.
///
/// # Errors
/// Says what could not be opened and the way out.
pub async fn open(config: &Config) -> anyhow::Result<Opened> {
    // Whatever is written from here on holds customers' data.
    rustix::process::umask(rustix::fs::Mode::from_bits_retain(0o077));
    files::private_dir(&config.data_dir)?;
    // A bucket's service is asked over TLS.
    crate::egress::install_tls_provider();
    let store = Store::open(&store::Settings {
        url: config.database_url(),
        max_connections: config.database.max_connections,
        acquire_timeout_ms: config.database.acquire_timeout_ms,
        timeouts: timeouts(&config.database),
        blobs: place_of_blobs(config)?,
    })
    .await?;
    let clock = store::health::clock(&store).await?;
    let keys = Arc::new(master_key::keys(config, &store, &clock).await?);
    let identity =
        Identity::new(store.clone(), Arc::clone(&keys), clock.clone(), Settings::from(config));
    Ok(Opened { store, keys, identity, clock })
}

fn timeouts(database: &config::Database) -> store::Timeouts {
    store::Timeouts {
        statement_ms: database.statement_timeout_ms,
        lock_ms: database.lock_timeout_ms,
        idle_in_transaction_ms: database.idle_in_transaction_timeout_ms,
        unreachable_ms: database.unreachable_timeout_ms,
    }
}

/// Where the configuration has the blob store.
///
/// # Errors
/// The endpoint is not a URL, or the credentials cannot be read.
pub fn place_of_blobs(config: &Config) -> anyhow::Result<Place> {
    let blobs = &config.blobs;
    let Some((name, prefix)) = blobs.bucket() else {
        return Ok(Place::Folder(config.blobs_dir()));
    };
    Ok(Place::Bucket(Box::new(Bucket {
        name: name.to_owned(),
        prefix: prefix.to_owned(),
        endpoint: blobs.endpoint.as_deref().map(url::Url::parse).transpose()?,
        region: blobs.region.clone(),
        virtual_host: blobs.virtual_host,
        allow_http: blobs.allow_http,
        key: blobs.credentials_file.as_deref().map(credentials::read).transpose()?,
    })))
}

/// The operators' bearer token: read from its file, or made and written there.
///
/// # Errors
/// Where the file cannot be used, or others can read it.
pub fn operators_token(file: &Path) -> anyhow::Result<Zeroizing<String>> {
    let content = files::read_or_create_private(file, || {
        let random: Zeroizing<[u8; 32]> = Zeroizing::new(rand::random());
        Zeroizing::new(format!("{}\n", URL_SAFE_NO_PAD.encode(*random)).into_bytes())
    })?;
    let token = std::str::from_utf8(&content).unwrap_or_default().trim();
    if token.len() < 32 {
        anyhow::bail!(
            "{}: an operators' token has 32 characters at least; remove the file and a new one is \
             made",
            file.display()
        );
    }
    Ok(Zeroizing::new(token.to_owned()))
}
