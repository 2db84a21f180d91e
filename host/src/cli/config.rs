//! `assurance config check` and `assurance config show`.

use clap::Subcommand;
use serde_json::json;

use super::{Common, output};
use crate::config::{Config, Flags, credentials, files};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Tell whether the service would start with this configuration.
    Check,
    /// Print the configuration in force, every key explained, secrets masked.
    Show,
}

impl Command {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<()> {
        let config = common.load(Flags::default())?;
        match self {
            Self::Check => check(&config, common),
            Self::Show => {
                output::text(config.to_documented_toml());
                Ok(())
            }
        }
    }
}

fn check(config: &Config, common: &Common) -> anyhow::Result<()> {
    for file in [config.master_key_file(), config.operators_token_file()] {
        if file.exists() {
            files::read_private(&file)?;
        }
    }
    if let Some(file) = &config.blobs.credentials_file {
        credentials::read(file)?;
    }
    if let Some(file) = &config.egress.ca_file {
        anyhow::ensure!(file.is_file(), "egress.ca_file: there is no file {}", file.display());
    }
    if let Some(dir) = &config.areas.dir {
        anyhow::ensure!(dir.is_dir(), "areas.dir: there is no folder {}", dir.display());
    }
    common.output().values(&[
        ("configuration", json!("usable")),
        ("api", json!(config.api.listen)),
        ("operators", json!(config.operators.listen)),
        ("data_dir", json!(config.data_dir)),
    ]);
    Ok(())
}
