//! `assurance area push`.

use std::path::PathBuf;

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::super::CommonOptions;
use super::read_component;
use super::source::{annotations, signature};
use assurance_outside::oci::{Artifact, OciReference, OciRegistry};

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaPushArgs {
    /// File of the component; its signature FILE.sig is pushed, too, if it
    /// exists.
    file: PathBuf,
    /// Target: oci://REGISTRY/REPOSITORY:TAG. Uses the credentials of `docker
    /// login`.
    #[arg(value_name = "ADDRESS")]
    to: OciReference,
    /// Connect to a registry on another machine without TLS.
    #[arg(long)]
    plain_http: bool,
}

impl AreaPushArgs {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let component = read_component(&self.file)?;
        let signature = signature(&self.file)?;
        // Time of the file instead of the current time, so that pushing a file
        // twice creates the same artifact.
        let made_at: DateTime<Utc> = std::fs::metadata(&self.file)
            .and_then(|told| told.modified())
            .with_context(|| format!("when {} was made cannot be told", self.file.display()))?
            .into();
        let digest = hex::encode(Sha256::digest(&component));
        let annotations = annotations(signature.as_ref());
        let artifact = Artifact { component: component.into(), annotations };
        let registry = OciRegistry::of(&self.to, self.plain_http)?;
        let at = registry.push(&self.to, artifact, made_at).await?;
        common.print_values(&[
            ("artifact", json!(at.to_string())),
            ("digest", json!(digest)),
            ("publisher", json!(signature.map(|signature| signature.publisher))),
        ]);
        Ok(())
    }
}
