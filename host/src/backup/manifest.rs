//! What a backup says of itself.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{MANIFEST, Progress};
use crate::domain::time::Timestamp;

/// Changes when an older release could not restore the backup.
const FORMAT: u32 = 1;
/// Read at a time, in bytes.
const CHUNK: usize = 1 << 20;

/// One backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Of the folder.
    pub format: u32,
    /// The release that made it.
    pub release: String,
    /// When the database was copied.
    pub at: Timestamp,
    /// Recognizes the master key that the database needs.
    pub key_fingerprint: String,
    /// The number of the database's newest migration.
    pub schema: i64,
    /// Every other file of the folder.
    pub files: Vec<Entry>,
    /// Objects that the database names and that the blob store had lost or
    /// changed.
    pub damaged: Vec<String>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Below the backup's folder.
    pub path: String,
    /// Size.
    pub bytes: u64,
    /// Lower-case hex.
    pub sha256: String,
}

impl Manifest {
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
    /// It is not there, is damaged, or of a newer format.
    pub fn read(dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join(MANIFEST);
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!("{} cannot be read; is this a backup that was completed?", path.display())
        })?;
        let manifest: Self = serde_json::from_str(&text)
            .with_context(|| format!("{} is damaged", path.display()))?;
        if manifest.format != FORMAT {
            bail!(
                "{} has format {}, and this release knows {FORMAT}; restore it with release {}",
                path.display(),
                manifest.format,
                manifest.release
            );
        }
        Ok(manifest)
    }

    /// Compares every file with its checksum.
    ///
    /// # Errors
    /// Names the first file that is missing or changed.
    pub fn verify(&self, dir: &Path, progress: Progress<'_>) -> anyhow::Result<()> {
        for entry in &self.files {
            let path = dir.join(&entry.path);
            let found = Entry::of(dir, &entry.path)
                .with_context(|| format!("{} cannot be read", path.display()))?;
            ensure!(
                found == *entry,
                "{} is not what was backed up: {} bytes with SHA-256 {}, not {} with {}; use \
                 another backup",
                path.display(),
                found.bytes,
                found.sha256,
                entry.bytes,
                entry.sha256
            );
        }
        progress(format!("{} files have their checksums", self.files.len()));
        Ok(())
    }

    /// The file of this path, if the backup has it.
    #[must_use]
    pub fn entry(&self, path: &str) -> Option<&Entry> {
        self.files.iter().find(|entry| entry.path == path)
    }

    pub(super) fn add(&mut self, dir: &Path, path: &str) -> anyhow::Result<()> {
        let entry = Entry::of(dir, path).with_context(|| format!("{path} cannot be read"))?;
        self.files.push(entry);
        Ok(())
    }
}

impl Entry {
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
