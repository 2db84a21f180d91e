//! `assurance backup`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use sha2::{Digest as _, Sha256};

use super::manifest::{Entry, Manifest};
use super::{BLOBS, CONFIGURATION, DATABASE, MANIFEST, MASTER_KEY, Progress};
use crate::config::{Config, files};
use crate::domain::time::Clock;
use crate::open;
use crate::store::backup::Embedded;
use crate::store::blobs::{Blobs, StoredBlob};

/// Read of a blob at a time, in bytes.
const CHUNK: u64 = 4 << 20;
/// Between two lines about blobs.
const REPORT_EVERY: Duration = Duration::from_secs(2);

/// Copies everything that belongs together into an empty folder, while the
/// service serves.
///
/// # Errors
/// Says which file and why. A folder without its manifest is not a backup.
pub async fn create(
    config: &Config,
    dir: &Path,
    with_key: bool,
    progress: Progress<'_>,
) -> anyhow::Result<Manifest> {
    let database = super::only_embedded(config)?;
    ensure!(database.is_file(), "{} is not there; nothing to back up", database.display());
    let Some(key) = super::master_key(config)? else {
        bail!(
            "{} is not there, and what the database has sealed opens only with it",
            config.master_key_file().display()
        );
    };
    super::empty_folder(dir)?;
    let mut backup = Backup {
        dir,
        blobs: Blobs::open(&open::place_of_blobs(config)?)?,
        copied: BTreeMap::new(),
        damaged: Vec::new(),
        progress,
    };
    let mut source = Embedded::open(&database).await?;
    let named = source.named_objects().await?;
    backup.copy_blobs(named, false).await?;
    let mut manifest = Manifest::new(super::fingerprint(&key)?, Clock::System.now());
    backup.copy_database(&mut source, &mut manifest).await?;
    write_private(&dir.join(CONFIGURATION), config.to_documented_toml().as_bytes())?;
    manifest.add(dir, CONFIGURATION)?;
    if with_key {
        write_private(&dir.join(MASTER_KEY), key.as_bytes())?;
        manifest.add(dir, MASTER_KEY)?;
    }
    backup.finish(manifest)
}

/// A backup being made.
struct Backup<'a> {
    dir: &'a Path,
    blobs: Blobs,
    /// By object.
    copied: BTreeMap<String, Entry>,
    damaged: Vec<String>,
    progress: Progress<'a>,
}

impl Backup<'_> {
    /// Copies the objects that are not copied yet. One that is missing was
    /// deleted meanwhile, unless it `must_exist`.
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

    /// `None`: the blob store does not have it.
    async fn copy_blob(&self, blob: &StoredBlob) -> anyhow::Result<Option<Entry>> {
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
            // Shorter than its row says; the checksum tells.
            if piece.is_empty() {
                break;
            }
            file.write_all(&piece).with_context(|| not_written(&target))?;
            digest.update(&piece);
            offset += piece.len() as u64;
        }
        Ok(Some(Entry { path, bytes: offset, sha256: hex::encode(digest.finalize()) }))
    }

    /// Copies the database, and then the blobs that only the copy names.
    async fn copy_database(
        &mut self,
        source: &mut Embedded,
        manifest: &mut Manifest,
    ) -> anyhow::Result<()> {
        let (begun, target) = (Instant::now(), self.dir.join(DATABASE));
        source.copy_into(&target).await.with_context(|| not_written(&target))?;
        let mut copy = Embedded::open(&target).await?;
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

    /// Removes copies of blobs that were deleted before the database was copied.
    fn forget_unnamed(&mut self, named: &[StoredBlob]) -> anyhow::Result<()> {
        let named: BTreeMap<&str, &str> =
            named.iter().map(|blob| (blob.object.as_str(), blob.sha256.as_str())).collect();
        let whole = |object: &str, entry: &Entry| named.get(object) == Some(&&*entry.sha256);
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

    /// Everything is on the disk before the manifest says so.
    fn finish(self, mut manifest: Manifest) -> anyhow::Result<Manifest> {
        manifest.files.extend(self.copied.into_values());
        manifest.damaged = self.damaged;
        rustix::fs::syncfs(File::open(self.dir)?)?;
        let draft = self.dir.join("manifest.new");
        write_private(&draft, &serde_json::to_vec_pretty(&manifest)?)?;
        fs::rename(&draft, self.dir.join(MANIFEST))?;
        File::open(self.dir)?.sync_all()?;
        Ok(manifest)
    }
}

fn create_private(path: &Path) -> anyhow::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;

    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600);
    options.open(path).with_context(|| not_written(path))
}

fn write_private(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    Ok(files::create_private(path, content)?)
}

fn not_written(path: &Path) -> String {
    format!("{} cannot be written", path.display())
}
