//! The command `assurance backup`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use sha2::{Digest as _, Sha256};

use super::manifest::{BackupFile, BackupManifest};
use super::{BLOBS, CONFIGURATION, DATABASE, MANIFEST, MASTER_KEY, ProgressReporter};
use assurance_core::config::{Config, files};
use assurance_core::domain::time::Clock;
use assurance_service::open;
use assurance_store::backup::SqliteBackupConnection;
use assurance_store::blobs::{Blobs, StoredBlob};

/// Size of one read of a blob during a backup, in bytes.
const CHUNK: u64 = 4 << 20;
/// Interval between two progress lines of a backup about copied blobs.
const REPORT_EVERY: Duration = Duration::from_secs(2);

/// Copies database, blobs and settings into an empty folder while the service runs.
///
/// # Errors
/// Names the file that could not be copied and why. A folder without its manifest is not a backup.
pub async fn create(
    config: &Config,
    dir: &Path,
    with_key: bool,
    progress: ProgressReporter<'_>,
) -> anyhow::Result<BackupManifest> {
    let database = super::only_embedded(config)?;
    ensure!(
        database.is_file(),
        "{} does not exist; there is nothing to back up",
        database.display()
    );
    let Some(key) = super::master_key(config)? else {
        bail!(
            "{} does not exist, and the database's encrypted values cannot be decrypted without \
            it",
            config.master_key_file().display()
        );
    };
    super::empty_folder(dir)?;
    let mut backup = BackupInProgress {
        dir,
        blobs: Blobs::open(&open::place_of_blobs(config)?)?,
        copied: BTreeMap::new(),
        damaged: Vec::new(),
        progress,
    };
    let mut source = SqliteBackupConnection::open(&database).await?;
    let named = source.named_objects().await?;
    backup.copy_blobs(named, false).await?;
    let mut manifest = BackupManifest::new(super::fingerprint(&key)?, Clock::System.now());
    backup.copy_database(&mut source, &mut manifest).await?;
    files::create_private(&dir.join(CONFIGURATION), config.to_documented_toml().as_bytes())?;
    manifest.add(dir, CONFIGURATION)?;
    if with_key {
        files::create_private(&dir.join(MASTER_KEY), key.as_bytes())?;
        manifest.add(dir, MASTER_KEY)?;
    }
    backup.finish(manifest)
}

/// State of a running backup.
struct BackupInProgress<'a> {
    dir: &'a Path,
    blobs: Blobs,
    /// Blobs copied into the backup so far, by object name.
    copied: BTreeMap<String, BackupFile>,
    damaged: Vec<String>,
    progress: ProgressReporter<'a>,
}

impl BackupInProgress<'_> {
    /// Copies the blobs in `named` that the backup does not have yet. A blob that the blob store
    /// lacks was deleted in the meantime; with `must_exist` it is listed as damaged.
    async fn copy_blobs(&mut self, named: Vec<StoredBlob>, must_exist: bool) -> anyhow::Result<()> {
        let count = named.len();
        let (mut bytes, mut reported) = (0, Instant::now());
        for (index, blob) in named.into_iter().enumerate() {
            if self.copied.contains_key(&blob.object) {
                continue;
            }
            bytes += blob.size;
            match self.copy_blob(&blob).await? {
                Some(entry) => {
                    if entry.sha256 != blob.sha256 && must_exist {
                        self.damaged.push(blob.object.clone());
                    }
                    self.copied.insert(blob.object, entry);
                }
                None if must_exist => self.damaged.push(blob.object),
                None => {}
            }
            if reported.elapsed() >= REPORT_EVERY {
                (self.progress)(format!("blobs: {} of {count}", index + 1));
                reported = Instant::now();
            }
        }
        (self.progress)(format!("blobs: {count}, {bytes} bytes of them copied now"));
        Ok(())
    }

    /// Copies one blob into the backup. Returns `None` if the blob store does not have the blob.
    async fn copy_blob(&self, blob: &StoredBlob) -> anyhow::Result<Option<BackupFile>> {
        let path = format!("{BLOBS}/{}", blob.object);
        let target = self.dir.join(&path);
        files::private_dir(target.parent().unwrap_or(self.dir))?;
        let mut file = create_private(&target)?;
        let (mut digest, mut offset) = (Sha256::new(), 0);
        while offset < blob.size {
            let piece = match self.blobs.read(blob, offset, CHUNK).await {
                Ok(piece) => piece,
                Err(failed) if self.blobs.has(&blob.object).await? => return Err(failed.into()),
                Err(_) => {
                    fs::remove_file(&target)?;
                    return Ok(None);
                }
            };
            // The object is shorter than its row says; the comparison of checksums detects that.
            if piece.is_empty() {
                break;
            }
            file.write_all(&piece).with_context(|| not_written(&target))?;
            digest.update(&piece);
            offset += piece.len() as u64;
        }
        Ok(Some(BackupFile { path, bytes: offset, sha256: hex::encode(digest.finalize()) }))
    }

    /// Copies the database, deletes the copied blobs that it does not reference, and copies the
    /// referenced ones that are missing.
    async fn copy_database(
        &mut self,
        source: &mut SqliteBackupConnection,
        manifest: &mut BackupManifest,
    ) -> anyhow::Result<()> {
        let (begun, target) = (Instant::now(), self.dir.join(DATABASE));
        source.copy_into(&target).await.with_context(|| not_written(&target))?;
        let mut copy = SqliteBackupConnection::open(&target).await?;
        if let Some(damage) = copy.damage().await? {
            bail!("the database is damaged: {damage}; restore an older backup");
        }
        manifest.schema = copy.schema().await?;
        let named = copy.named_objects().await?;
        copy.close().await?;
        manifest.add(self.dir, DATABASE)?;
        let bytes = manifest.entry(DATABASE).map_or(0, |entry| entry.bytes);
        let ms = begun.elapsed().as_millis();
        (self.progress)(format!("database: {bytes} bytes in {ms} ms, checked"));
        self.forget_unnamed(&named)?;
        self.copy_blobs(named, true).await
    }

    /// Deletes copies of blobs that the copied database does not reference, or references with
    /// another checksum.
    fn forget_unnamed(&mut self, named: &[StoredBlob]) -> anyhow::Result<()> {
        let named: BTreeMap<&str, &str> =
            named.iter().map(|blob| (blob.object.as_str(), blob.sha256.as_str())).collect();
        let whole = |object: &str, entry: &BackupFile| named.get(object) == Some(&&*entry.sha256);
        let gone: Vec<String> = self
            .copied
            .iter()
            .filter(|(object, entry)| !whole(object, entry))
            .map(|(object, _)| object.clone())
            .collect();
        for object in gone {
            self.copied.remove(&object);
            fs::remove_file(self.dir.join(BLOBS).join(object))?;
        }
        Ok(())
    }

    /// Flushes every file to disk, then writes the manifest.
    fn finish(self, mut manifest: BackupManifest) -> anyhow::Result<BackupManifest> {
        manifest.files.extend(self.copied.into_values());
        manifest.damaged = self.damaged;
        sync(self.dir)?;
        let path = self.dir.join(MANIFEST);
        files::replace_private(&path, &serde_json::to_vec_pretty(&manifest)?, true)
            .with_context(|| not_written(&path))?;
        File::open(self.dir)?.sync_all()?;
        Ok(manifest)
    }
}

/// Waits until everything in the folder is written to disk.
#[cfg(target_os = "linux")]
fn sync(dir: &Path) -> std::io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(dir)?)?)
}

/// Flushes all file systems to disk, on systems other than Linux.
#[cfg(not(target_os = "linux"))]
fn sync(_dir: &Path) -> std::io::Result<()> {
    rustix::fs::sync();
    Ok(())
}

fn create_private(path: &Path) -> anyhow::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;

    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600);
    options.open(path).with_context(|| not_written(path))
}

fn not_written(path: &Path) -> String {
    format!("{} cannot be written", path.display())
}
