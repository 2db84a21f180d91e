//! HTTP client for benchmarks: sends requests to the API, parses JSON and measures times.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use minreq::{Method, Request};
use serde_json::{Value as Json, json};

use super::CREATE;
use super::server::Server;
use crate::process;

const ANSWER_LIMIT_S: u64 = 120;
const SETTLE_LIMIT: Duration = Duration::from_secs(1_800);

impl Server {
    /// Sends a GET request to a path below the workspace. Returns the JSON of the response.
    pub(crate) fn get(&self, path: &str) -> anyhow::Result<Json> {
        self.call(minreq::get(self.url(path)))
    }

    /// Creates another workspace of the benchmark's user.
    pub(crate) fn create_workspace(&self, name: &str) -> anyhow::Result<Json> {
        let request = minreq::post(format!("http://{}/v1/workspaces", self.address()));
        self.call(with_json(request, &json!({ "name": name })))
    }

    /// Creates this number of support cases, each with a separate `Idempotency-Key`.
    pub(crate) fn create_cases(&self, number: u32) -> anyhow::Result<()> {
        for _ in 0..number {
            let request = minreq::post(self.url(CREATE.path))
                .with_header("Idempotency-Key", format!("seed-{}", self.next_load()))
                .with_header("Content-Type", "application/json")
                .with_header("Connection", "close")
                .with_body(CREATE.body.unwrap_or_default());
            self.call(request)?;
        }
        Ok(())
    }

    /// Sends a POST request to a path below the workspace; `None` sends no body.
    pub(crate) fn post(&self, path: &str, body: Option<&Json>) -> anyhow::Result<Json> {
        let request = minreq::post(self.url(path));
        self.call(match body {
            Some(body) => with_json(request, body),
            None => request.with_header("Content-Length", "0"),
        })
    }

    /// Sends a PUT request to a path below the workspace.
    pub(crate) fn put(&self, path: &str, body: &Json) -> anyhow::Result<Json> {
        self.call(with_json(minreq::put(self.url(path)), body))
    }

    /// Sends the content of an upload with the URL and the headers from its creation.
    pub(crate) fn store(&self, upload: &Json, content: &str) -> anyhow::Result<()> {
        let url = upload["upload_url"].as_str().context("no upload_url")?;
        let mut request = Request::new(Method::Put, url).with_body(content);
        for (name, value) in upload["upload_headers"].as_object().into_iter().flatten() {
            request = request.with_header(name, value.as_str().unwrap_or_default());
        }
        let answer = request.with_timeout(ANSWER_LIMIT_S).send()?;
        ensure!(answer.status_code < 300, "the upload was refused: {}", answer.as_str()?);
        Ok(())
    }

    /// Polls a resource until a member has one of the values in `ends`.
    pub(crate) fn settled(&self, path: &str, member: &str, ends: &[&str]) -> anyhow::Result<Json> {
        let what = format!("{member} of {path} is one of {ends:?}");
        process::until(SETTLE_LIMIT, Duration::from_millis(20), &what, || {
            let resource = self.get(path)?;
            let is_settled = resource[member].as_str().is_some_and(|value| ends.contains(&value));
            Ok(is_settled.then_some(resource))
        })
    }

    fn call(&self, request: Request) -> anyhow::Result<Json> {
        let request = request.with_header("Cookie", &self.person.cookie);
        send(request.with_header("X-CSRF-Token", &self.person.csrf), ANSWER_LIMIT_S)
    }
}

/// Adds a JSON body to a request.
pub(super) fn with_json(request: Request, body: &Json) -> Request {
    request.with_header("Content-Type", "application/json").with_body(body.to_string())
}

/// Sends a request that must succeed. Returns the JSON of the response.
pub(super) fn send(request: Request, limit_s: u64) -> anyhow::Result<Json> {
    let answer = request.with_timeout(limit_s).send()?;
    let body = answer.as_str()?;
    ensure!(answer.status_code < 300, "the server answered {}: {body}", answer.status_code);
    Ok(serde_json::from_str(body)?)
}
