//! `assurance config check` and `assurance config show`.

use clap::Subcommand;
use serde_json::json;

use super::{CommonOptions, output};
use assurance_core::config::{Config, FlagOverrides, credentials, files, ignored_variables};
use assurance_outside::egress::Egress;
use assurance_outside::mail::Mailer;
use assurance_service::open;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check the configuration, and the keys and files that it names, without
    /// starting the service.
    Check,
    /// Print the effective configuration with an explanation of every key.
    /// Secrets are masked; defaults are commented out.
    Show,
}

impl Command {
    pub(super) fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        match self {
            Self::Check => check(&common.load()?, common)?,
            Self::Show => {
                let source = common.source(FlagOverrides::default());
                output::text(Config::documented_toml(&source)?);
            }
        }
        Ok(())
    }
}

fn check(config: &Config, common: &CommonOptions) -> anyhow::Result<()> {
    open::configured_keys(config)?;
    let token_file = config.operators_token_file();
    if token_file.exists() {
        files::read_private(&token_file)?;
    }
    if let Some(file) = &config.blobs.credentials_file {
        credentials::read(file)?;
    }
    Egress::new(config.egress.clone())?;
    Mailer::new(config)?;
    if let Some(dir) = &config.areas.dir {
        anyhow::ensure!(dir.is_dir(), "areas.dir: there is no folder {}", dir.display());
    }
    for name in ignored_variables() {
        output::note(format!("{name} is not a configuration key and is ignored"));
    }
    common.print_values(&[
        ("configuration", json!("usable")),
        ("api", json!(config.api.listen)),
        ("operators", json!(config.operators.listen)),
        ("data_dir", json!(config.data_dir)),
    ]);
    Ok(())
}
