//! `assurance config check` and `assurance config show`.

use anyhow::ensure;
use clap::Subcommand;
use serde_json::json;

use super::{CommonOptions, check_database_url, output};
use assurance_core::config::{Config, FlagOverrides, credentials, ignored_variables};
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
            Self::Check => check(common)?,
            Self::Show => {
                let source = common.source(FlagOverrides::default());
                output::text(Config::documented_toml(&source)?);
            }
        }
        Ok(())
    }
}

fn check(common: &CommonOptions) -> anyhow::Result<()> {
    let config = Config::load(&common.source(FlagOverrides::default()))?;
    let refusals = refusals(&config);
    ensure!(refusals.is_empty(), "{}", refusals.join("\n"));
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

/// Returns the errors of values and files that only their use can check.
fn refusals(config: &Config) -> Vec<String> {
    let checks = [
        check_database_url(config),
        open::configured_keys(config).map(drop),
        check_operators_token(config),
        check_credentials(config),
        Egress::new(config.egress.clone()).map(drop),
        Mailer::new(config).map(drop),
        check_areas_dir(config),
    ];
    let errors = checks.into_iter().filter_map(Result::err);
    errors.map(|error| output::with_causes(&error)).collect()
}

fn check_operators_token(config: &Config) -> anyhow::Result<()> {
    let file = config.operators_token_file();
    // A missing file is created when the service starts.
    if file.exists() {
        open::operators_token(&file)?;
    }
    Ok(())
}

fn check_credentials(config: &Config) -> anyhow::Result<()> {
    if let Some(file) = &config.blobs.credentials_file {
        credentials::read(file)?;
    }
    Ok(())
}

fn check_areas_dir(config: &Config) -> anyhow::Result<()> {
    if let Some(dir) = &config.areas.dir {
        ensure!(dir.is_dir(), "areas.dir: there is no folder {}", dir.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use assurance_core::config::files::create_private;

    #[tokio::test]
    async fn every_value_and_file_that_the_service_refuses_is_reported_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config { data_dir: folder.path().to_path_buf(), ..Config::default() };
        config.database.url = Some("postgres://u:p#w@h/n".to_owned().into());
        config.blobs.credentials_file = Some(folder.path().join("credentials"));
        config.egress.ca_file = Some(folder.path().join("ca.pem"));
        config.mail.from = Some("nobody".to_owned());
        config.areas.dir = Some(folder.path().join("nowhere"));
        create_private(&config.master_key_file(), b"abc").unwrap();
        create_private(&config.operators_token_file(), b"short").unwrap();
        let refusals = refusals(&config);
        let expected = [
            "database.url: invalid port number",
            "/master.key: the master key is not 32 bytes in base64; restore the key",
            "/operators.token: the operators' token has fewer than 32 characters",
            "blobs.credentials_file: ",
            "egress.ca_file ",
            "mail.from: ",
            "areas.dir: ",
        ];
        assert_eq!(refusals.len(), expected.len(), "{refusals:#?}");
        for (refusal, expected) in refusals.iter().zip(expected) {
            assert!(refusal.contains(expected), "no {expected} in {refusal}");
        }
        assert!(refusals[1].ends_with("openssl rand -base64 32"), "{}", refusals[1]);
        assert_eq!(refusals[3].matches("os error 2").count(), 1, "{}", refusals[3]);
    }

    #[test]
    fn the_files_of_a_first_start_may_be_missing() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { data_dir: folder.path().join("data"), ..Config::default() };
        open::configured_keys(&config).unwrap();
        check_operators_token(&config).unwrap();
        assert!(!config.data_dir.exists(), "nothing is created");
    }
}
