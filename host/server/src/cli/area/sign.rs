//! `assurance area sign`.

use std::path::PathBuf;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::super::{CommonOptions, input};
use super::read_component;
use assurance_core::signing;
use assurance_service::app::areas::Signature;
use assurance_service::app::folder::signature_of;

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaSignArgs {
    /// File of the component.
    file: PathBuf,
    /// File of the publisher's private key, from `assurance key generate`.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Name of the publisher in the service's configuration (areas.publishers).
    #[arg(long, value_name = "NAME")]
    publisher: String,
}

impl AreaSignArgs {
    pub(super) fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let key = input::signing_key(&self.key)?;
        let digest = hex::encode(Sha256::digest(read_component(&self.file)?));
        let signature = Signature {
            publisher: self.publisher,
            signature: STANDARD.encode(key.sign(&signing::area_message(&digest))),
        };
        let out = signature_of(&self.file);
        std::fs::write(&out, serde_json::to_string(&signature)? + "\n")
            .with_context(|| format!("{} cannot be written", out.display()))?;
        common.print_values(&[
            ("signature_file", json!(out)),
            ("digest", json!(digest)),
            ("publisher", json!(signature.publisher)),
            ("public_key", json!(key.public_key_base64())),
        ]);
        Ok(())
    }
}
