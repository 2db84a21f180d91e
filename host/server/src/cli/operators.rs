//! The operators' API of a running service, as commands ask it.

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use reqwest::{Method, RequestBuilder};
use serde::Deserialize;
use serde_json::Value as Json;
use zeroize::Zeroizing;

use super::CommonOptions;
use assurance_core::config::{Config, FlagOverrides, files};

/// Compiling the largest component takes less.
const PATIENCE: Duration = Duration::from_secs(120);

/// Service to ask, and the token to ask with.
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
pub(super) struct OperatorsClient {
    url: String,
    token: Zeroizing<String>,
    client: reqwest::Client,
}

impl Target {
    pub(super) fn connect(self, common: &CommonOptions) -> anyhow::Result<OperatorsClient> {
        let config = common.load(FlagOverrides::default())?;
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
        assurance_outside::egress::install_tls_provider();
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
        Ok(OperatorsClient { url, token, client })
    }
}

impl OperatorsClient {
    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url)).bearer_auth(&*self.token)
    }

    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Json> {
        self.send(self.request(Method::GET, path)).await
    }

    pub(super) async fn post(&self, path: &str, body: &Json) -> anyhow::Result<Json> {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// A text that is no JSON.
    pub(super) async fn text(&self, path: &str) -> anyhow::Result<String> {
        self.receive(self.request(Method::GET, path)).await
    }

    pub(super) async fn send(&self, request: RequestBuilder) -> anyhow::Result<Json> {
        let text = self.receive(request).await?;
        serde_json::from_str(&text).context("the service's answer is not JSON")
    }

    /// A refusal is printed in the service's own words, with a next step that
    /// is a command.
    async fn receive(&self, request: RequestBuilder) -> anyhow::Result<String> {
        let answer = request.send().await.with_context(|| {
            format!("the service does not answer at {}; is `assurance serve` running?", self.url)
        })?;
        let status = answer.status();
        let text = answer.text().await?;
        if status.is_success() {
            return Ok(text);
        }
        let problem: Json = serde_json::from_str(&text).unwrap_or_default();
        let Some(detail) = problem["detail"].as_str() else {
            anyhow::bail!("{} answered with status {status}: {text}", self.url);
        };
        match next_step(&problem) {
            Some(next) => anyhow::bail!("{detail}\n{next}"),
            None => anyhow::bail!("{detail}"),
        }
    }
}

/// What to do about a problem, for people at a command line. Most details say
/// it; the hints of the API are for those who send requests.
fn next_step(problem: &Json) -> Option<String> {
    match problem["code"].as_str()? {
        "unauthenticated" => Some(
            "Give a token with --token or ASSURANCE_OPERATORS_TOKEN; `assurance token create` \
             makes one, and operators.token_file names the first."
                .to_owned(),
        ),
        // Its hint is the command that makes a token with the scope.
        "permission_denied" => problem["hint"].as_str().map(str::to_owned),
        "unavailable" | "area_overloaded" => Some("Run the command again in a moment.".to_owned()),
        "internal_error" => {
            let id = problem["request_id"].as_str()?;
            Some(format!("The log of the service says more about request {id}."))
        }
        _ => None,
    }
}

/// A value of a query.
pub(super) fn escaped(value: &str) -> String {
    url::form_urlencoded::byte_serialize(value.as_bytes()).collect()
}

/// The operators' URL: that of the running service, else the configured one.
fn configured_url(config: &Config) -> anyhow::Result<String> {
    let configured = || format!("http://{}", config.operators.listen);
    Ok(serving(config)?.map_or_else(configured, |serving| serving.operators))
}

/// URLs of the service that runs on the data folder, from its `serving.json`.
#[derive(Debug, Deserialize)]
pub(super) struct ServingUrls {
    pub(super) api: String,
    pub(super) operators: String,
}

/// `None` if no service runs there.
pub(super) fn serving(config: &Config) -> anyhow::Result<Option<ServingUrls>> {
    let file = config.data_dir.join("serving.json");
    let Ok(text) = std::fs::read_to_string(&file) else { return Ok(None) };
    let damaged = || format!("{} is damaged; start the service again", file.display());
    serde_json::from_str(&text).with_context(damaged).map(Some)
}
