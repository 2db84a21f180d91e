//! `assurance config check` and `assurance config show`.

use clap::Subcommand;
use serde_json::json;

use super::{CommonOptions, output};
use assurance_core::config::{Config, FlagOverrides, credentials, files, ignored_variables};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check the configuration and report every error that would prevent the
    /// service from starting.
    Check,
    /// Print the effective configuration with an explanation of every key.
    /// Secrets are masked; defaults are commented out.
    Show,
}

impl Command {
    pub(super) fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        match self {
            Self::Check => check(&common.load(FlagOverrides::default())?, common)?,
            Self::Show => {
                let source = common.source(FlagOverrides::default());
                output::text(Config::documented_toml(&source)?);
            }
        }
        Ok(())
    }
}

fn check(config: &Config, common: &CommonOptions) -> anyhow::Result<()> {
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
    for name in ignored_variables() {
        output::note(format!("{name} is not a configuration key and is ignored"));
    }
    common.output().values(&[
        ("configuration", json!("usable")),
        ("api", json!(config.api.listen)),
        ("operators", json!(config.operators.listen)),
        ("data_dir", json!(config.data_dir)),
    ]);
    Ok(())
}
