//! Backups of an installation with an embedded database: taken while it
//! serves, and restored into an empty place.
//!
//! A blob is written before the row that names it, and deleted a day after
//! nothing names it any more. So the blobs that are named now are copied first,
//! then the database, then the blobs that the copy names in addition: whatever
//! the copied database names is in the backup.

mod create;
mod manifest;
mod restore;

use std::path::Path;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use zeroize::Zeroizing;

use crate::config::{Config, files};
use crate::secrets::Keys;

pub use create::create;
pub use manifest::{Entry, Manifest};
pub use restore::restore;

/// The manifest, written last: without it a backup is not complete.
const MANIFEST: &str = "manifest.json";
const DATABASE: &str = "assurance.sqlite";
const BLOBS: &str = "blobs";
const CONFIGURATION: &str = "configuration.toml";
const MASTER_KEY: &str = "master.key";

/// Receives a line for the operator at each step, and every few seconds.
pub type Progress<'a> = &'a (dyn Fn(String) + Sync);

/// The master key in base64, where the configuration says it is. It is never
/// made here: a new key opens nothing.
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

/// What a key is recognized by; the key cannot be found from it.
fn fingerprint(master_key: &str) -> anyhow::Result<String> {
    let keys = Keys::from_base64(master_key)?;
    Ok(BASE64_STANDARD.encode(&keys.derive("backup fingerprint")[..12]))
}

fn only_embedded(config: &Config) -> anyhow::Result<std::path::PathBuf> {
    let Some(database) = config.sqlite_file() else {
        bail!(
            "database.url is a PostgreSQL server's, which has its own tools: copy the blobs, run \
             pg_dump, copy the blobs again (host/OPERATING.md, \"Keys and backup\")"
        );
    };
    Ok(database)
}

/// Makes a folder for this user alone, or takes one that is empty.
fn empty_folder(dir: &Path) -> anyhow::Result<()> {
    files::private_dir(dir)?;
    let mut entries =
        std::fs::read_dir(dir).with_context(|| format!("{} cannot be read", dir.display()))?;
    if entries.next().is_some() {
        bail!("{} is not empty; name a folder that is, or one that is not there", dir.display());
    }
    Ok(())
}
