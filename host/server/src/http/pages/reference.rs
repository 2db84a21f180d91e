//! Reference: a page that lists all operations and events, and a page for each
//! of them, rendered from the OpenAPI document.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value as Json;

use super::example::{curl, json_block};
use super::layout::page;
use super::markdown::description;
use super::members::{SchemaMemberReader, resolved};
use super::navigation::{Navigation, events};
use super::tables::{members, parameters};
use super::{cached, events as event_pages};
use crate::http::extract::SinglePathParameter;
use crate::http::problem::Refusal;
use assurance_service::app::App;

/// One operation of the OpenAPI document.
#[derive(Debug)]
pub(super) struct DocumentedOperation<'a> {
    /// HTTP method in upper case.
    pub(super) method: String,
    /// Path template of the operation, such as
    /// `/v1/workspaces/{workspace_id}/members`.
    pub(super) path: &'a str,
    /// OpenAPI operation object.
    pub(super) described: &'a Json,
}

impl DocumentedOperation<'_> {
    /// Returns the `operationId`.
    pub(super) fn name(&self) -> &str {
        text(&self.described["operationId"])
    }
}

/// Returns the page that lists all operations by area, and all events.
pub(in crate::http) async fn index(State(app): State<App>) -> Result<Response, Refusal> {
    cached(&app, "reference", |document| {
        Some(page("Reference", &Navigation::new(document, "/reference"), &all(document)))
    })
    .await
}

fn all(document: &Json) -> Markup {
    let tags = document["tags"].as_array().into_iter().flatten();
    html! {
        p {
            "Operations in bold are version 1 of the published contract. Writes with a session \
             need " code { "X-CSRF-Token" } "; writes with an access token do not. For programs: "
            a href="/openapi.json" { "OpenAPI 3.1" } "."
        }
        @for tag in tags {
            @let name = text(&tag["name"]);
            h2 id=(name) { (name) }
            p { (text(&tag["description"])) }
            table {
                tbody {
                    @for operation in operations(document) {
                        @if operation.described["tags"][0] == tag["name"] { (line(&operation)) }
                    }
                }
            }
        }
        h2 id="events" { "Events" }
        p { "What the service sends to " a href="/guides/webhooks" { "webhooks" } "." }
        table {
            tbody {
                @for (name, event) in events(document) {
                    tr {
                        th scope="row" { a href={ "/reference/" (name) } { code { (name) } } }
                        td { (text(&event["summary"])) }
                    }
                }
            }
        }
    }
}

/// Returns the page of one operation or event.
pub(in crate::http) async fn one(
    State(app): State<App>,
    SinglePathParameter(name): SinglePathParameter,
) -> Result<Response, Refusal> {
    let wanted = name.clone();
    cached(&app, &format!("reference/{name}"), move |document| {
        let found = operations(document).find(|operation| operation.name() == wanted);
        let Some(operation) = found else { return event_pages::page(document, &wanted) };
        let (tag, title) = (&operation.described["tags"][0], &operation.described["summary"]);
        let navigation = Navigation::within(document, text(tag), &wanted);
        Some(page(text(title), &navigation, &described(document, &operation)))
    })
    .await
}

fn described(document: &Json, operation: &DocumentedOperation<'_>) -> Markup {
    let described = operation.described;
    let schemas = SchemaMemberReader::new(document);
    html! {
        p { code { (operation.method) " " (operation.path) } }
        (description(text(&described["description"])))
        p { (callers(described)) }
        (parameters(&schemas, described))
        (request_body(&schemas, described))
        h2 id="example" { "Example" }
        @if !is_public(described) {
            p { a href="/guides/authentication#send-requests" { "How to set the variables" } }
        }
        pre tabindex="0" { code { (curl(&schemas, operation)) } }
        (answers(&schemas, described))
        @if schemas.is_exhausted() {
            p { "This page has no room for all members. The OpenAPI document has them." }
        }
    }
}

/// Returns every operation of the document.
pub(super) fn operations(document: &Json) -> impl Iterator<Item = DocumentedOperation<'_>> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        methods.map(|(method, described)| DocumentedOperation {
            method: method.to_ascii_uppercase(),
            path: path.as_str(),
            described,
        })
    })
}

/// Returns the text of a JSON string; an empty string for other values.
pub(super) fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

fn line(operation: &DocumentedOperation<'_>) -> Markup {
    let described = operation.described;
    let summary = text(&described["summary"]);
    html! {
        tr {
            th scope="row" {
                a href={ "/reference/" (operation.name()) } {
                    @if described["x-contract"] == true { b { (summary) } } @else { (summary) }
                }
            }
            td { code { (operation.method) " " (operation.path) } }
        }
    }
}

fn is_public(described: &Json) -> bool {
    described["security"].as_array().is_some_and(Vec::is_empty)
}

/// Returns who may call the operation, and with which credential.
fn callers(described: &Json) -> String {
    if is_public(described) {
        return "No session is needed.".to_owned();
    }
    let mut choices = described["security"].as_array().into_iter().flatten();
    let credential = if choices.any(|choice| choice.get("access_token").is_some()) {
        "Needs a session or an access token."
    } else {
        "Needs a session; access tokens are refused."
    };
    let people = match text(&described["x-least-role"]) {
        "viewer" => "For every member of the workspace.",
        "member" => "For the workspace's members, administrators and owners; not for viewers.",
        "admin" => "For the workspace's administrators and owners.",
        "owner" => "For the workspace's owners.",
        _ => "For everybody who is signed in.",
    };
    format!("{people} {credential}")
}

fn request_body(schemas: &SchemaMemberReader<'_>, described: &Json) -> Markup {
    let content = described["requestBody"]["content"].as_object();
    html! {
        @for (media_type, media) in content.into_iter().flatten() {
            h2 id="request" { "Request body" }
            p { code { (media_type) } }
            (members("request", schemas.members(&media["schema"])))
        }
    }
}

fn answers(schemas: &SchemaMemberReader<'_>, described: &Json) -> Markup {
    let answers = described["responses"].as_object().into_iter().flatten();
    let (good, bad): (Vec<_>, Vec<_>) = answers.partition(|(status, _)| status.starts_with('2'));
    html! {
        @for (status, answer) in good {
            h2 id="response" { "Response " (status) }
            @let content = &answer["content"]["application/json"];
            @if !content["schema"].is_null() {
                (json_block(&content["example"]))
                p class="kind" { (schemas.kind(&content["schema"])) }
                (members("response", schemas.members(&content["schema"])))
            }
            (headers(schemas, answer))
        }
        (refusals(schemas, described, &bad))
    }
}

fn headers(schemas: &SchemaMemberReader<'_>, answer: &Json) -> Markup {
    let headers = answer["headers"].as_object();
    html! {
        h3 { "Response headers" }
        table {
            tbody {
                @for (name, header) in headers.into_iter().flatten() {
                    @let header = text(&resolved(schemas.document, header)["description"]);
                    tr { th scope="row" { code { (name) } } td { (description(header)) } }
                }
            }
        }
    }
}

fn refusals(
    schemas: &SchemaMemberReader<'_>,
    described: &Json,
    answers: &[(&String, &Json)],
) -> Markup {
    let codes = described["x-problem-codes"].as_array().into_iter().flatten().map(text);
    html! {
        h2 id="problems" { "Problems" }
        table {
            tbody {
                @for (status, answer) in answers {
                    @let answer = text(&resolved(schemas.document, answer)["description"]);
                    tr { th scope="row" { (status) } td { (description(answer)) } }
                }
            }
        }
        p {
            @for code in codes { a href={ "/problems/" (code) } { code { (code) } } " " }
        }
    }
}
