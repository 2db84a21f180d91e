//! `assurance key generate`.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;

use super::CommonOptions;
use assurance_core::config::files;
use assurance_core::signing::Ed25519PrivateKey;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create an Ed25519 signing key; prints the public key.
    Generate {
        /// File for the new private key (PKCS#8 PEM, mode 0600); must not exist.
        #[arg(long, value_name = "FILE", default_value = "producer-key.pem")]
        out: PathBuf,
    },
}

impl Command {
    pub(super) fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let Self::Generate { out } = self;
        if out.exists() {
            anyhow::bail!("{} exists; name another file with --out", out.display());
        }
        let key = Ed25519PrivateKey::generate();
        files::create_private(&out, key.to_pem()?.as_bytes())?;
        common.print_values(&[
            ("private_key_file", json!(out)),
            ("public_key", json!(key.public_key_base64())),
        ]);
        Ok(())
    }
}
