//! Pages for people, and the OpenAPI document.

use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};

use super::code::{self, Code};
use super::problem::Refusal;
use crate::app::App;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:3rem auto;\
    padding:0 1rem}code{background:#8882;padding:.1em .3em}";

/// What this is, and where to go on.
pub(super) async fn home(State(app): State<App>) -> Response {
    let snapshot = app.registry.snapshot();
    let areas = snapshot.areas().map(|area| {
        let manifest = &area.manifest;
        let (name, summary) = (escaped(&manifest.name), escaped(&manifest.summary));
        format!("<li><b>{name}</b> {}: {summary}</li>", manifest.version)
    });
    let body = format!(
        "<p>A JSON API for customer workspaces. Every operation is described in the \
         <a href=\"/openapi.json\">OpenAPI document</a>; every refusal is a problem (RFC 9457) \
         whose <code>type</code> leads to <a href=\"/problems/validation_failed\">a page like \
         this</a>.</p><p>Live areas:</p><ul>{}</ul>",
        areas.collect::<String>()
    );
    page("Workspace Assurance Service", &body)
}

/// The OpenAPI document of the live areas.
pub(super) async fn openapi(State(app): State<App>) -> Response {
    const KIND: HeaderValue = HeaderValue::from_static("application/json");
    let document = app.registry.snapshot().openapi(&app.base_url);
    ([(header::CONTENT_TYPE, KIND)], document).into_response()
}

/// What a problem's code means.
pub(super) async fn problem(
    State(app): State<App>,
    Path(code): Path<String>,
) -> Result<Response, Refusal> {
    if let Some(known) = Code::ALL.into_iter().find(|known| known.as_str() == code) {
        let body = format!(
            "<p>Status {}, code <code>{code}</code>.</p><p>{}</p>",
            known.status().as_u16(),
            escaped(known.explanation())
        );
        return Ok(page(&code::title(&code), &body));
    }
    let users = operations_with(&app, &code);
    if users.is_empty() {
        return Err(Refusal::not_found());
    }
    let body = format!(
        "<p>Code <code>{code}</code>, of {}. <code>detail</code> and <code>hint</code> say what \
         is wrong and what to do.</p>",
        users
            .iter()
            .map(|user| format!("<code>{}</code>", escaped(user)))
            .collect::<Vec<_>>()
            .join(", ")
    );
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

fn page(title: &str, body: &str) -> Response {
    let title = escaped(title);
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style>\
         <h1>{title}</h1>{body}</html>"
    );
    let mut response = Html(html).into_response();
    response
        .headers_mut()
        .insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    response
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
