//! Client of the operators' API of a running service.

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use reqwest::{Method, RequestBuilder};
use serde::Deserialize;
use serde_json::Value as Json;
use zeroize::Zeroizing;

use super::CommonOptions;
use assurance_core::config::{Config, files};

/// Time in which the service must accept a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Timeout of a request that only reads. Others have none: a component may
/// compile for `runtime.max_compile_ms`, and an index is built without a limit.
const PATIENCE: Duration = Duration::from_secs(120);

/// Command-line arguments that select the service and the operators' token to
/// send.
#[derive(Debug, Args)]
pub(super) struct OperatorsClientArgs {
    /// URL of the operators' API. Default: the address of the service that runs
    /// with this configuration.
    #[arg(long, value_name = "URL", env = "ASSURANCE_OPERATORS_URL")]
    operators: Option<String>,
    /// Operators' token, from `assurance token create`. Default: the token in
    /// operators.token_file.
    #[arg(long, value_name = "TOKEN", env = "ASSURANCE_OPERATORS_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

/// HTTP client of the operators' API with its URL and token.
pub(super) struct OperatorsClient {
    url: String,
    token: Zeroizing<String>,
    client: reqwest::Client,
}

impl OperatorsClientArgs {
    pub(super) fn connect(self, common: &CommonOptions) -> anyhow::Result<OperatorsClient> {
        let config = common.load()?;
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
        OperatorsClient::new(url, token)
    }
}

impl OperatorsClient {
    fn new(url: String, token: Zeroizing<String>) -> anyhow::Result<Self> {
        assurance_outside::egress::install_tls_provider();
        let client = reqwest::Client::builder().no_proxy().connect_timeout(CONNECT).build()?;
        Ok(Self { url, token, client })
    }

    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let reads = method.is_safe();
        let request = self.client.request(method, format!("{}{path}", self.url));
        let request = request.bearer_auth(&*self.token);
        if reads { request.timeout(PATIENCE) } else { request }
    }

    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Json> {
        self.send(self.request(Method::GET, path)).await
    }

    pub(super) async fn post(&self, path: &str, body: &Json) -> anyhow::Result<Json> {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// Returns the response to a GET as text; for responses that are not JSON.
    pub(super) async fn text(&self, path: &str) -> anyhow::Result<String> {
        self.receive(self.request(Method::GET, path)).await
    }

    pub(super) async fn send(&self, request: RequestBuilder) -> anyhow::Result<Json> {
        let text = self.receive(request).await?;
        serde_json::from_str(&text).context("the service's answer is not JSON")
    }

    /// Sends the request and returns the response's text. For a problem,
    /// returns its detail with a next step that is a command.
    async fn receive(&self, request: RequestBuilder) -> anyhow::Result<String> {
        let answer = request.send().await.map_err(|error| self.unanswered(error))?;
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

    /// Returns the error of a request without a response.
    fn unanswered(&self, error: reqwest::Error) -> anyhow::Error {
        let url = &self.url;
        let told = if error.is_timeout() && !error.is_connect() {
            format!(
                "the service at {url} took the request, but did not answer in time; run the \
                 command again"
            )
        } else {
            format!("the service does not answer at {url}; is `assurance serve` running?")
        };
        anyhow::Error::new(error).context(told)
    }
}

/// Returns the next step after a problem of the operators' API, for a person at
/// the command line; `None` if the problem's detail already has it. The API's
/// own hints are written for clients that send requests.
fn next_step(problem: &Json) -> Option<String> {
    match problem["code"].as_str()? {
        "unauthenticated" => Some(
            "Give a token with --token or ASSURANCE_OPERATORS_TOKEN; `assurance token create` \
             makes one, and operators.token_file names the first."
                .to_owned(),
        ),
        // The hint of this problem is a command that creates a token with the
        // right scope.
        "permission_denied" => problem["hint"].as_str().map(str::to_owned),
        "unavailable" | "area_overloaded" => Some("Run the command again in a moment.".to_owned()),
        "internal_error" => {
            let id = problem["request_id"].as_str()?;
            Some(format!("The log of the service says more about request {id}."))
        }
        _ => None,
    }
}

/// Percent-encodes the value of a query parameter.
pub(super) fn escaped(value: &str) -> String {
    url::form_urlencoded::byte_serialize(value.as_bytes()).collect()
}

/// Returns the operators' URL of the running service, or else the configured
/// one.
fn configured_url(config: &Config) -> anyhow::Result<String> {
    let configured = || format!("http://{}", config.operators.listen);
    Ok(serving(config)?.map_or_else(configured, |serving| serving.operators))
}

/// URLs of a running service, from the file `serving.json` in its data folder.
#[derive(Debug, Deserialize)]
pub(super) struct ServingUrls {
    pub(super) api: String,
    pub(super) operators: String,
}

/// Reads `serving.json`; `None` if no service runs with this data folder.
pub(super) fn serving(config: &Config) -> anyhow::Result<Option<ServingUrls>> {
    let file = config.data_dir.join("serving.json");
    let Ok(text) = std::fs::read_to_string(&file) else { return Ok(None) };
    let damaged = || format!("{} is damaged; start the service again", file.display());
    serde_json::from_str(&text).with_context(damaged).map(Some)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn only_a_request_that_reads_has_a_time_limit() {
        // The kernel accepts connections; nobody answers.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let client = OperatorsClient::new(url, Zeroizing::new("token".to_owned())).unwrap();
        let request = |method| client.request(method, "/areas/support");
        for method in [Method::PUT, Method::POST, Method::DELETE] {
            assert_eq!(request(method).build().unwrap().timeout(), None);
        }
        let read = request(Method::GET);
        assert_eq!(read.try_clone().unwrap().build().unwrap().timeout(), Some(&PATIENCE));
        let late = client.send(read.timeout(Duration::from_millis(50))).await.unwrap_err();
        assert!(late.to_string().contains("did not answer in time"), "{late}");
        drop(silent);
        let absent = client.get("/areas").await.unwrap_err().to_string();
        assert!(absent.contains("is `assurance serve` running?"), "{absent}");
    }
}
