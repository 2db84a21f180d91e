//! `assurance backup` and `assurance restore`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{CommonOptions, output};
use crate::backup::{self, BackupManifest};
use crate::serve::DatabaseLock;

/// Copy the embedded database and the blobs into an empty folder while the
/// service runs. A restore also needs the master key: store it elsewhere, or
/// use --with-key.
#[derive(Debug, Args)]
pub(super) struct Backup {
    /// Target folder; it must be empty or not exist.
    dir: PathBuf,
    /// Include the master key. Anyone with the backup can then decrypt every
    /// stored secret.
    #[arg(long)]
    with_key: bool,
}

/// Restore a backup into the configured data folder, which must be empty. The
/// service must not be running.
#[derive(Debug, Args)]
pub(super) struct Restore {
    /// Folder that `assurance backup` created.
    dir: PathBuf,
}

impl Backup {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let config = common.load()?;
        private_from_here();
        let made = backup::create(&config, &self.dir, self.with_key, &|line| output::note(line));
        let manifest = made.await?;
        print(common, &manifest);
        anyhow::ensure!(
            manifest.damaged.is_empty(),
            "the blob store has lost or changed {} of the blobs that the database names; \
             manifest.json lists them under \"damaged\", and the rest of the backup is whole",
            manifest.damaged.len()
        );
        Ok(())
    }
}

impl Restore {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let config = common.load()?;
        private_from_here();
        let _lock = DatabaseLock::take(&config)?;
        let restored = backup::restore(&config, &self.dir, &|line| output::note(line));
        print(common, &restored.await?);
        Ok(())
    }
}

/// Prepares the process: new files are readable by this user only, because they
/// contain customer data, and TLS is available for a bucket.
fn private_from_here() {
    rustix::process::umask(rustix::fs::Mode::from_bits_retain(0o077));
    assurance_outside::egress::install_tls_provider();
}

fn print(common: &CommonOptions, manifest: &BackupManifest) {
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    common.print_values(&[
        ("at", json!(manifest.at)),
        ("release", json!(manifest.release)),
        ("schema", json!(manifest.schema)),
        ("files", json!(manifest.files.len())),
        ("bytes", json!(bytes)),
        ("key_fingerprint", json!(manifest.key_fingerprint)),
        ("damaged", json!(manifest.damaged.len())),
    ]);
}
