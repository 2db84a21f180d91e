//! The command `assurance restore`.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;

use super::manifest::BackupManifest;
use super::{BLOBS, DATABASE, MASTER_KEY, ProgressReporter};
use assurance_core::config::{Config, files};
use assurance_service::open;
use assurance_store::backup::newest_schema;
use assurance_store::blobs::Blobs;

/// Size of one read of a backed-up blob during a restore, in bytes.
const CHUNK: usize = 4 << 20;

/// Restores a backup into an empty installation: the embedded database, the blobs, and the master
/// key if this machine does not have it.
///
/// Everything is verified before anything is written. The database is written last, so an
/// interrupted restore does not look like a working installation.
///
/// # Errors
/// The backup is damaged or made by a newer release, the master key is another one, or the target
/// is not empty.
pub async fn restore(
    config: &Config,
    dir: &Path,
    progress: ProgressReporter<'_>,
) -> anyhow::Result<BackupManifest> {
    let database = super::only_embedded(config)?;
    let manifest = BackupManifest::read(dir)?;
    ensure!(
        manifest.schema <= newest_schema(),
        "the backup was made by release {} and has migration {}, this release supports at most \
        {}; restore it with that release or a newer one",
        manifest.release,
        manifest.schema,
        newest_schema()
    );
    ensure!(manifest.entry(DATABASE).is_some(), "the backup has no {DATABASE}");
    for file in with_companions(&database) {
        ensure!(!file.exists(), "{} exists already; a restore overwrites nothing", file.display());
    }
    let blobs = Blobs::open(&open::place_of_blobs(config)?)?;
    ensure!(
        blobs.is_empty().await?,
        "the blob store has content; a restore overwrites nothing: empty it, or name another place \
         (blobs.dir, blobs.url)"
    );
    let key = missing_key(config, dir, &manifest)?;
    manifest.verify(dir, progress)?;

    put_blobs(&blobs, dir, &manifest, progress).await?;
    if key {
        let text = fs::read(dir.join(MASTER_KEY))?;
        files::create_private(&config.master_key_file(), &text)?;
        progress(format!("master key: {}", config.master_key_file().display()));
    }
    put_database(&dir.join(DATABASE), &database)?;
    progress(format!("database: {}", database.display()));
    Ok(manifest)
}

/// Returns the paths of the database and of the two files that SQLite keeps next to it.
fn with_companions(database: &Path) -> [PathBuf; 3] {
    let beside = |suffix: &str| PathBuf::from(format!("{}{suffix}", database.display()));
    [database.to_owned(), beside("-wal"), beside("-shm")]
}

/// Returns whether the master key must be restored from the backup, because this machine has none.
fn missing_key(config: &Config, dir: &Path, manifest: &BackupManifest) -> anyhow::Result<bool> {
    let wanted = &manifest.key_fingerprint;
    if let Some(key) = super::master_key(config)? {
        let found = super::fingerprint(&key)?;
        ensure!(
            found == *wanted,
            "the backup needs the master key with the fingerprint {wanted}, and the configured \
            one has {found}; write the right one to {}",
            config.master_key_file().display()
        );
        return Ok(false);
    }
    let kept = dir.join(MASTER_KEY);
    if manifest.entry(MASTER_KEY).is_none() {
        bail!(
            "the backup has no master key; write the one with the fingerprint {wanted} to {} \
            first",
            config.master_key_file().display()
        );
    }
    let found = super::fingerprint(fs::read_to_string(&kept)?.trim())?;
    ensure!(found == *wanted, "{} is another installation's key", kept.display());
    Ok(true)
}

async fn put_blobs(
    blobs: &Blobs,
    dir: &Path,
    manifest: &BackupManifest,
    progress: ProgressReporter<'_>,
) -> anyhow::Result<()> {
    let mut count = 0;
    for entry in &manifest.files {
        let Some(object) = entry.path.strip_prefix(BLOBS).and_then(|rest| rest.strip_prefix('/'))
        else {
            continue;
        };
        let mut file = File::open(dir.join(&entry.path))?;
        let mut upload = blobs.upload_as(object);
        loop {
            let mut piece = Vec::with_capacity(CHUNK);
            file.by_ref().take(CHUNK as u64).read_to_end(&mut piece)?;
            if piece.is_empty() {
                break;
            }
            upload.write(Bytes::from(piece)).await?;
        }
        let stored = upload.finish().await?;
        ensure!(stored.sha256 == entry.sha256, "{} changed while it was read", entry.path);
        count += 1;
    }
    progress(format!("blobs: {count}"));
    Ok(())
}

/// Copies the backup's database to a temporary name and renames it, so that the database appears
/// completely or not at all.
fn put_database(from: &Path, to: &Path) -> anyhow::Result<()> {
    if let Some(folder) = to.parent() {
        files::private_dir(folder)?;
    }
    let draft = to.with_extension("restoring");
    let written = || -> std::io::Result<()> {
        let mut file = File::create(&draft)?;
        std::io::copy(&mut File::open(from)?, &mut file)?;
        file.sync_all()?;
        fs::rename(&draft, to)
    };
    written().with_context(|| format!("{} cannot be written", to.display()))
}
