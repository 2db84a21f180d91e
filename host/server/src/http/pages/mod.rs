//! HTML pages for people, and the OpenAPI document. Most pages are rendered
//! from that document.

mod events;
mod example;
mod guides;
mod layout;
mod llms;
mod markdown;
mod members;
mod navigation;
mod problems;
mod reference;
mod tables;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use maud::html;
use serde_json::Value as Json;

use super::client_address::address_of;
use super::conditional;
use super::context::RequestContext;
use super::problem::Refusal;
use assurance_service::app::App;
use assurance_service::registry::Snapshot;
use layout::respond;
use navigation::Navigation;

pub(super) use guides::{index as guides, show as guide};
pub(super) use llms::llms;
pub(super) use problems::problem;
pub(super) use reference::{index as reference, one as reference_page};

/// Limits the number of page requests of one address, because pages need no
/// sign-in and are compressed at each request.
pub(super) async fn limited(
    State(app): State<App>,
    context: RequestContext,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    context.charge(app.limiter.page(address_of(&parts, &app)))?;
    Ok(next.run(Request::from_parts(parts, body)).await)
}

/// Returns the home page: what the service is, and links to guides and areas.
pub(super) async fn home(State(app): State<App>) -> Result<Response, Refusal> {
    cached(&app, "home", |document| {
        let tags = document["tags"].as_array().into_iter().flatten();
        let body = html! {
            p {
                "A JSON API for customer workspaces. Every operation and every event has its page \
                 in the " a href="/reference" { "reference" } ", made from the "
                a href="/openapi.json" { "OpenAPI document" } ". Every refusal is a problem "
                "(RFC 9457) whose " code { "type" } " leads to "
                a href="/problems/validation_failed" { "a page like this" } "."
            }
            h2 { "Start here" }
            ol {
                @for guide in guides::ALL {
                    li { a href=(guide.address()) { (guide.title) } ": " (guide.summary) "." }
                }
            }
            h2 { "Live areas" }
            ul {
                @for tag in tags {
                    @let name = tag["name"].as_str().unwrap_or_default();
                    li {
                        a href={ "/reference#" (name) } { (name) }
                        @if let Some(version) = tag["x-area-version"].as_str() { " " (version) }
                        ": " (tag["description"].as_str().unwrap_or_default())
                    }
                }
            }
            p {
                "For programs: " a href="/openapi.json" { "/openapi.json" } " and "
                a href="/llms.txt" { "/llms.txt" } "."
            }
        };
        Some(layout::page(layout::SERVICE, &Navigation::new(document, "/"), &body))
    })
    .await
}

/// Returns the OpenAPI document of the live areas; 304 if the client has the
/// current one.
pub(super) async fn openapi(
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let snapshot = described(&app).await?;
    let document = snapshot.openapi(&app.base_url);
    const JSON: HeaderValue = HeaderValue::from_static("application/json");
    let mut answer = ([(header::CONTENT_TYPE, JSON)], document.text.clone()).into_response();
    // Weak tag, because the compressed and the uncompressed document have the
    // same tag.
    if let Ok(tag) = HeaderValue::from_str(&format!("W/\"{}\"", document.digest)) {
        answer.headers_mut().insert(header::ETAG, tag);
    }
    let ask_again = const { HeaderValue::from_static("no-cache") };
    answer.headers_mut().insert(header::CACHE_CONTROL, ask_again);
    Ok(conditional::unless_known(&headers, answer))
}

/// Returns the live areas after rendering their OpenAPI document on a blocking
/// thread, if it is not rendered yet.
async fn described(app: &App) -> Result<Arc<Snapshot>, Refusal> {
    let snapshot = app.registry.snapshot();
    if !snapshot.is_described() {
        let (areas, app) = (Arc::clone(&snapshot), app.clone());
        let making = tokio::task::spawn_blocking(move || {
            areas.openapi(&app.base_url);
        });
        making.await.map_err(Refusal::internal)?;
    }
    Ok(snapshot)
}

/// Returns a page that is rendered from the OpenAPI document. It is rendered
/// once for each snapshot of the live areas, on a blocking thread. `make`
/// returns `None` for a page that does not exist.
async fn cached(
    app: &App,
    name: &str,
    make: impl FnOnce(&Json) -> Option<String> + Send + 'static,
) -> Result<Response, Refusal> {
    let snapshot = described(app).await?;
    if let Some(known) = snapshot.page(name) {
        return Ok(respond(known));
    }
    let (app, name) = (app.clone(), name.to_owned());
    let making = tokio::task::spawn_blocking(move || {
        let page = Bytes::from(make(&snapshot.openapi(&app.base_url).value)?);
        snapshot.keep_page(name, page.clone());
        Some(page)
    });
    let made = making.await.map_err(Refusal::internal)?;
    made.map(respond).ok_or_else(Refusal::not_found)
}
