//! Pages for people, and the OpenAPI document that most of them are made from.

mod example;
mod members;
mod reference;

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use bytes::Bytes;
use headers::{ETag, HeaderMapExt as _, IfNoneMatch};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value as Json;

use super::code::{self, Code};
use super::problem::Refusal;
use super::session::address_of;
use crate::app::App;
use crate::registry::Snapshot;

pub(super) use reference::{index as reference, operation};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:3rem auto;\
    padding:0 1rem}code,pre{background:#8882;padding:.1em .3em}pre{padding:1em;overflow:auto}\
    pre code{background:none;padding:0}table{border-collapse:collapse;width:100%}\
    td,th{text-align:left;vertical-align:top;padding:.3em .8em .3em 0;\
    border-bottom:1px solid #8884}td p{margin:0}";

/// Pages are for everybody, and each is compressed anew, so an address may ask
/// for so many.
pub(super) async fn limited(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    app.limiter.page(address_of(&parts, &app))?;
    Ok(next.run(Request::from_parts(parts, body)).await)
}

/// What this is, and where to go on.
pub(super) async fn home(State(app): State<App>) -> Response {
    let snapshot = app.registry.snapshot();
    page(
        "Workspace Assurance Service",
        &html! {
            p {
                "A JSON API for customer workspaces. Every operation has its page in the "
                a href="/reference" { "reference" } ", made from the "
                a href="/openapi.json" { "OpenAPI document" } ". Every refusal is a problem "
                "(RFC 9457) whose " code { "type" } " leads to "
                a href="/problems/validation_failed" { "a page like this" } "."
            }
            p { "Live areas:" }
            ul {
                @for area in snapshot.areas() {
                    @let manifest = &area.manifest;
                    li {
                        a href={ "/reference#" (manifest.name) } { (manifest.name) } " "
                        (manifest.version) ": " (manifest.summary)
                    }
                }
            }
        },
    )
}

/// The OpenAPI document of the live areas; nothing, where the client has it.
pub(super) async fn openapi(
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let snapshot = described(&app).await?;
    let document = snapshot.openapi(&app.base_url);
    // Weak: it is the same document, compressed or not.
    let tag = format!("W/\"{}\"", document.digest).parse::<ETag>();
    let known = headers.typed_get::<IfNoneMatch>();
    let mut answer = match (&tag, known) {
        (Ok(tag), Some(known)) if !known.precondition_passes(tag) => {
            StatusCode::NOT_MODIFIED.into_response()
        }
        _ => {
            const JSON: HeaderValue = HeaderValue::from_static("application/json");
            ([(header::CONTENT_TYPE, JSON)], document.text.clone()).into_response()
        }
    };
    if let Ok(tag) = tag {
        answer.headers_mut().typed_insert(tag);
        let ask_again = const { HeaderValue::from_static("no-cache") };
        answer.headers_mut().insert(header::CACHE_CONTROL, ask_again);
    }
    Ok(answer)
}

/// The live areas, once their OpenAPI document is there. Making it takes time
/// that the serving threads do not have.
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

/// A page made from the OpenAPI document, once for each set of live areas and
/// not on a serving thread.
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

/// What a problem's code means.
pub(super) async fn problem(
    State(app): State<App>,
    Path(code): Path<String>,
) -> Result<Response, Refusal> {
    if let Some(known) = Code::ALL.into_iter().find(|known| known.as_str() == code) {
        let body = html! {
            p { "Status " (known.status().as_u16()) ", code " code { (code) } "." }
            p { (known.explanation()) }
        };
        return Ok(page(&code::title(&code), &body));
    }
    let users = operations_with(&app, &code);
    if users.is_empty() {
        return Err(Refusal::not_found());
    }
    let body = html! {
        p {
            "Code " code { (code) } ", of "
            @for (at, user) in users.iter().enumerate() {
                @if at > 0 { ", " }
                a href={ "/reference/" (user) } { code { (user) } }
            }
            ". " code { "detail" } " and " code { "hint" } " say what is wrong and what to do."
        }
    };
    Ok(page(&code::title(&code), &body))
}

fn operations_with(app: &App, code: &str) -> Vec<String> {
    let snapshot = app.registry.snapshot();
    let routes = snapshot.areas().flat_map(|area| area.manifest.routes.iter());
    routes
        .filter(|route| route.problem_codes.iter().any(|declared| declared == code))
        .map(|route| route.operation_id.clone())
        .collect()
}

fn page(title: &str, body: &Markup) -> Response {
    respond(page_of(title, body).into())
}

fn page_of(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { h1 { (title) } (body) }
        }
    };
    page.into_string()
}

fn respond(page: Bytes) -> Response {
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    let mut response = Html(page).into_response();
    response
        .headers_mut()
        .insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    response
}
