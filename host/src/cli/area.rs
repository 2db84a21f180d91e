//! `assurance area list`: asks the running service.

use std::time::Duration;

use anyhow::Context as _;
use clap::Subcommand;
use serde_json::Value as Json;

use super::Common;
use crate::config::{Config, Flags, files};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// The areas the running service answers with, as the operators' API
    /// tells them.
    List,
}

impl Command {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let Self::List = self;
        let config = common.load(Flags::default())?;
        let token = files::read_private(&config.operators_token_file())?;
        let token = std::str::from_utf8(&token)?.trim();
        let url = format!("{}/areas", operators_url(&config)?);
        crate::egress::install_tls_provider();
        let client =
            reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build()?;
        let answer = client.get(&url).bearer_auth(token).send().await.with_context(|| {
            format!("the service does not answer at {url}; is `assurance serve` running?")
        })?;
        let status = answer.status();
        anyhow::ensure!(status.is_success(), "the service answered {status} at {url}");
        println!("{}", serde_json::to_string_pretty(&answer.json::<Json>().await?)?);
        Ok(())
    }
}

/// Where the service said it serves, else where it is configured to.
fn operators_url(config: &Config) -> anyhow::Result<String> {
    let serving = config.data_dir.join("serving.json");
    let Ok(text) = std::fs::read_to_string(&serving) else {
        return Ok(format!("http://{}", config.operators.listen));
    };
    let told: Json = serde_json::from_str(&text)
        .with_context(|| format!("{} is damaged; start the service again", serving.display()))?;
    Ok(told["operators"].as_str().unwrap_or_default().trim_end_matches('/').to_owned())
}
