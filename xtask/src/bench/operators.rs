//! HTTP client of the operators' API for benchmarks.

use anyhow::Context as _;
use minreq::Request;
use serde_json::Value as Json;

use super::client::{send, with_json};
use super::server::Server;

/// Timeout of a request to the operators' API, in seconds; compiling large components takes long.
const ANSWER_LIMIT_S: u64 = 300;

/// Client with the address and token of the operators' API.
pub(crate) struct OperatorsClient {
    url: String,
    token: String,
}

impl OperatorsClient {
    /// Creates the client for a running server.
    pub(crate) fn of(server: &Server) -> anyhow::Result<Self> {
        let data = &server.data;
        let serving = std::fs::read_to_string(data.join("serving.json"))?;
        let serving: Json = serde_json::from_str(&serving)?;
        let url = serving["operators"].as_str().context("serving.json names no operators' URL")?;
        let token = std::fs::read_to_string(data.join("operators.token"))?;
        Ok(Self { url: url.to_owned(), token: token.trim().to_owned() })
    }

    pub(crate) fn get(&self, path: &str) -> anyhow::Result<Json> {
        self.call(minreq::get(format!("{}{path}", self.url)))
    }

    /// Deploys a component to an area. Returns the JSON of the response.
    pub(crate) fn put(&self, area: &str, query: &str, component: Vec<u8>) -> anyhow::Result<Json> {
        let request = minreq::put(format!("{}{area}?{query}", self.url));
        self.call(request.with_header("Content-Type", "application/wasm").with_body(component))
    }

    /// Sends a POST request for an area to the operators' API.
    pub(crate) fn post(&self, area: &str, action: &str, body: &Json) -> anyhow::Result<Json> {
        self.call(with_json(minreq::post(format!("{}{area}/{action}", self.url)), body))
    }

    fn call(&self, request: Request) -> anyhow::Result<Json> {
        let authorization = format!("Bearer {}", self.token);
        send(request.with_header("Authorization", authorization), ANSWER_LIMIT_S)
    }
}
