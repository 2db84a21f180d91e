//! Backups of an installation with an embedded database. A backup is made while the service runs
//! and restored into an empty folder.
//!
//! A blob is written before the row that references it, and deleted a day after its last reference.
//! A backup first copies the blobs that are referenced now, then the database, then the blobs that
//! only the copied database references. So the backup contains every blob that its database
//! references.

mod create;
mod manifest;
mod restore;

use std::path::Path;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use zeroize::Zeroizing;

use assurance_core::config::{Config, files};
use assurance_core::secrets::Keys;

pub use create::create;
pub use manifest::{BackupFile, BackupManifest};
pub use restore::restore;

/// File name of a backup's manifest. The manifest is written last; a backup without it is
/// incomplete.
const MANIFEST: &str = "manifest.json";
const DATABASE: &str = "assurance.sqlite";
const BLOBS: &str = "blobs";
const CONFIGURATION: &str = "configuration.toml";
const MASTER_KEY: &str = "master.key";

/// Function that receives a progress line of a backup or restore, at each step and every few
/// seconds.
pub type ProgressReporter<'a> = &'a (dyn Fn(String) + Sync);

/// Returns the configured master key in base64; `None` if its file is missing. Never creates one: a
/// new key could not decrypt the database.
fn master_key(config: &Config) -> anyhow::Result<Option<Zeroizing<String>>> {
    if let Some(given) = &config.keys.master_key {
        return Ok(Some(Zeroizing::new(given.reveal().trim().to_owned())));
    }
    let file = config.master_key_file();
    if !file.exists() {
        return Ok(None);
    }
    let bytes = files::read_private(&file)?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default().trim().to_owned();
    Ok(Some(Zeroizing::new(text)))
}

/// Returns the fingerprint of a master key. The key cannot be derived from it.
fn fingerprint(master_key: &str) -> anyhow::Result<String> {
    let keys = Keys::from_base64(master_key)?;
    Ok(BASE64_STANDARD.encode(&keys.derive("backup fingerprint")[..12]))
}

fn only_embedded(config: &Config) -> anyhow::Result<std::path::PathBuf> {
    let Some(database) = config.sqlite_file() else {
        bail!(
            "database.url names a PostgreSQL server; use its own tools: copy the blobs, run \
            pg_dump, copy the blobs again (host/OPERATING.md, \"Keys and backup\")"
        );
    };
    Ok(database)
}

/// Creates a folder that only this user can access, or accepts an empty one.
fn empty_folder(dir: &Path) -> anyhow::Result<()> {
    files::private_dir(dir)?;
    let mut entries =
        std::fs::read_dir(dir).with_context(|| format!("{} cannot be read", dir.display()))?;
    if entries.next().is_some() {
        bail!("{} is not empty; name an empty folder or one that does not exist", dir.display());
    }
    Ok(())
}
