//! `/llms.txt` (llmstxt.org): index of the documentation for language models.

use std::fmt::Write as _;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value as Json;

use super::navigation::events;
use super::reference::operations;
use super::{described, guides};
use crate::http::problem::Refusal;
use assurance_service::app::App;

/// Returns `/llms.txt`, an index of guides, operations and events, one line
/// each.
pub(in crate::http) async fn llms(State(app): State<App>) -> Result<Response, Refusal> {
    const MARKDOWN: HeaderValue = HeaderValue::from_static("text/markdown; charset=utf-8");
    let snapshot = described(&app).await?;
    let text = list(&snapshot.openapi(&app.base_url).value);
    Ok(([(header::CONTENT_TYPE, MARKDOWN)], text).into_response())
}

fn list(document: &Json) -> String {
    let base = document["servers"][0]["url"].as_str().unwrap_or_default();
    let mut text = format!(
        "# Workspace Assurance Service\n\n> JSON API for customer workspaces. \
         {base}/openapi.json describes every operation (OpenAPI 3.1).\n\n## Guides\n\n"
    );
    for guide in guides::ALL {
        let (title, address) = (guide.title, guide.address());
        let _ = writeln!(text, "- [{title}]({base}{address}.md): {}", guide.summary);
    }
    text.push_str("\n## Operations\n\n");
    for operation in operations(document) {
        let (name, summary) = (operation.name(), &operation.described["summary"]);
        let summary = summary.as_str().unwrap_or_default();
        let (method, path) = (&operation.method, operation.path);
        let _ = writeln!(text, "- [{name}]({base}/reference/{name}): {summary}. `{method} {path}`");
    }
    text.push_str("\n## Events\n\n");
    for (name, event) in events(document) {
        let summary = event["summary"].as_str().unwrap_or_default();
        let _ = writeln!(text, "- [{name}]({base}/reference/{name}): {summary}");
    }
    text
}
