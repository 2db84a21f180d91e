//! The manifest of a backup.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{MANIFEST, ProgressReporter};
use assurance_core::domain::time::Timestamp;

/// Format version of the backups of this release. It changes when older releases cannot restore the
/// backup.
const FORMAT: u32 = 1;
/// Size of one read of a backup file, in bytes.
const CHUNK: usize = 1 << 20;

/// Contents of a backup's `manifest.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BackupManifest {
    /// Format version of the backup folder.
    pub format: u32,
    /// Release that created the backup.
    pub release: String,
    /// Time at which the database was copied.
    pub at: Timestamp,
    /// Fingerprint of the master key that the database needs.
    pub key_fingerprint: String,
    /// Number of the newest migration that is applied to the database.
    pub schema: i64,
    /// Every file of the backup except the manifest.
    pub files: Vec<BackupFile>,
    /// Object names of blobs that the database references but that the blob store had lost or
    /// changed.
    pub damaged: Vec<String>,
}

/// A file of a backup, as the manifest lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFile {
    /// Path relative to the backup's folder.
    pub path: String,
    /// Size of the backup file, in bytes.
    pub bytes: u64,
    /// SHA-256 of the backup file, in lower-case hex.
    pub sha256: String,
}

impl BackupManifest {
    pub(super) fn new(key_fingerprint: String, at: Timestamp) -> Self {
        Self {
            format: FORMAT,
            release: env!("CARGO_PKG_VERSION").to_owned(),
            at,
            key_fingerprint,
            schema: 0,
            files: Vec::new(),
            damaged: Vec::new(),
        }
    }

    /// Reads the manifest of a backup.
    ///
    /// # Errors
    /// The manifest is missing or damaged, or the backup has the format of another release.
    pub fn read(dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join(MANIFEST);
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!("{} cannot be read; is this a backup that was completed?", path.display())
        })?;
        let manifest: Self = serde_json::from_str(&text)
            .with_context(|| format!("{} is damaged", path.display()))?;
        if manifest.format != FORMAT {
            bail!(
                "{} has format {}, and this release supports {FORMAT}; restore it with release {}",
                path.display(),
                manifest.format,
                manifest.release
            );
        }
        Ok(manifest)
    }

    /// Compares every file of the backup in `dir` with its checksum in the manifest.
    ///
    /// # Errors
    /// Names the first missing or changed file.
    pub fn verify(&self, dir: &Path, progress: ProgressReporter<'_>) -> anyhow::Result<()> {
        for entry in &self.files {
            let path = dir.join(&entry.path);
            let found = BackupFile::of(dir, &entry.path)
                .with_context(|| format!("{} cannot be read", path.display()))?;
            ensure!(
                found == *entry,
                "{} differs from the manifest: it has {} bytes with SHA-256 {}, not {} with {}; \
                use another backup",
                path.display(),
                found.bytes,
                found.sha256,
                entry.bytes,
                entry.sha256
            );
        }
        progress(format!("verified the checksums of {} files", self.files.len()));
        Ok(())
    }

    /// Returns the manifest's entry of the backup file with this path; `None` if the backup does
    /// not contain the file.
    #[must_use]
    pub fn entry(&self, path: &str) -> Option<&BackupFile> {
        self.files.iter().find(|entry| entry.path == path)
    }

    pub(super) fn add(&mut self, dir: &Path, path: &str) -> anyhow::Result<()> {
        let entry = BackupFile::of(dir, path).with_context(|| format!("{path} cannot be read"))?;
        self.files.push(entry);
        Ok(())
    }
}

impl BackupFile {
    fn of(dir: &Path, path: &str) -> std::io::Result<Self> {
        let mut file = BufReader::with_capacity(CHUNK, File::open(dir.join(path))?);
        let (mut digest, mut bytes) = (Sha256::new(), 0);
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = file.read(&mut chunk)?;
            if read == 0 {
                break;
            }
            digest.update(&chunk[..read]);
            bytes += read as u64;
        }
        Ok(Self { path: path.to_owned(), bytes, sha256: hex::encode(digest.finalize()) })
    }
}
