//! The operators' API of a running service, as commands ask it.

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use reqwest::{Method, RequestBuilder};
use serde_json::Value as Json;
use zeroize::Zeroizing;

use super::Common;
use crate::config::{Config, Flags, files};

/// Compiling the largest component takes less.
const PATIENCE: Duration = Duration::from_secs(120);

/// Which service, and who asks.
#[derive(Debug, Args)]
pub(super) struct Target {
    /// Where the operators' listener answers; default: where the service of
    /// this configuration says it does.
    #[arg(long, value_name = "URL", env = "ASSURANCE_OPERATORS_URL")]
    operators: Option<String>,
    /// An operators' token, from `assurance token create`; default: the one in
    /// operators.token_file.
    #[arg(long, value_name = "TOKEN", env = "ASSURANCE_OPERATORS_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

/// A connection to the operators' API.
pub(super) struct Operators {
    url: String,
    token: Zeroizing<String>,
    client: reqwest::Client,
}

impl Target {
    pub(super) fn connect(self, common: &Common) -> anyhow::Result<Operators> {
        let config = common.load(Flags::default())?;
        let url = match self.operators {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => configured_url(&config)?,
        };
        let token = match self.token {
            Some(token) => Zeroizing::new(token),
            None => {
                let token = files::read_private(&config.operators_token_file())?;
                Zeroizing::new(std::str::from_utf8(&token)?.trim().to_owned())
            }
        };
        crate::egress::install_tls_provider();
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
        Ok(Operators { url, token, client })
    }
}

impl Operators {
    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url)).bearer_auth(&*self.token)
    }

    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Json> {
        self.send(self.request(Method::GET, path)).await
    }

    pub(super) async fn post(&self, path: &str, body: &Json) -> anyhow::Result<Json> {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// A refusal is told in the service's own words.
    pub(super) async fn send(&self, request: RequestBuilder) -> anyhow::Result<Json> {
        let answer = request.send().await.with_context(|| {
            format!("the service does not answer at {}; is `assurance serve` running?", self.url)
        })?;
        let status = answer.status();
        let text = answer.text().await?;
        if status.is_success() {
            return serde_json::from_str(&text).context("the service's answer is not JSON");
        }
        let problem: Json = serde_json::from_str(&text).unwrap_or_default();
        let detail = problem["detail"].as_str().unwrap_or(&text);
        match problem["hint"].as_str() {
            Some(hint) => anyhow::bail!("{detail}\n{hint}"),
            None => anyhow::bail!("{detail} ({status})"),
        }
    }
}

/// Where the service said it serves, else where it is configured to.
fn configured_url(config: &Config) -> anyhow::Result<String> {
    let serving = config.data_dir.join("serving.json");
    let Ok(text) = std::fs::read_to_string(&serving) else {
        return Ok(format!("http://{}", config.operators.listen));
    };
    let told: Json = serde_json::from_str(&text)
        .with_context(|| format!("{} is damaged; start the service again", serving.display()))?;
    Ok(told["operators"].as_str().unwrap_or_default().trim_end_matches('/').to_owned())
}
