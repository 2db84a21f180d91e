//! The reference: a page that lists all operations, and a page for each, made
//! from the OpenAPI document, so that it is as true as that.

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{Event, Parser};
use serde_json::Value as Json;

use super::example::curl;
use super::members::{Member, Schemas, resolved};
use super::{cached, page_of};
use crate::app::App;
use crate::http::problem::Refusal;

/// One operation of the document.
#[derive(Debug)]
pub(super) struct Operation<'a> {
    /// In capitals.
    pub(super) method: String,
    /// A template.
    pub(super) path: &'a str,
    /// The operation object.
    pub(super) described: &'a Json,
}

/// All operations, by area.
pub(in crate::http) async fn index(State(app): State<App>) -> Result<Response, Refusal> {
    cached(&app, "", |document| Some(page_of("Reference", &all(document)))).await
}

fn all(document: &Json) -> Markup {
    let tags = document["tags"].as_array().into_iter().flatten();
    html! {
        p {
            "Those in bold are version 1 of the published contract. Writes need the session's "
            code { "X-CSRF-Token" } ". The same for programs: "
            a href="/openapi.json" { "OpenAPI 3.1" } "."
        }
        @for tag in tags {
            @let name = text(&tag["name"]);
            h2 id=(name) { (name) }
            p { (text(&tag["description"])) }
            table {
                @for operation in operations(document) {
                    @if operation.described["tags"][0] == tag["name"] { (line(&operation)) }
                }
            }
        }
    }
}

/// One operation: its request and its responses.
pub(in crate::http) async fn operation(
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let named = id.clone();
    cached(&app, &id, move |document| {
        let operation = operations(document)
            .find(|operation| operation.described["operationId"] == named.as_str())?;
        Some(page_of(text(&operation.described["summary"]), &one(document, &operation)))
    })
    .await
}

fn one(document: &Json, operation: &Operation<'_>) -> Markup {
    let described = operation.described;
    let schemas = Schemas::new(document);
    html! {
        p { code { (operation.method) " " (operation.path) } }
        (markdown(text(&described["description"])))
        p { (callers(described)) }
        (parameters(&schemas, described))
        (request_body(&schemas, described))
        h2 { "Try it" }
        pre { code { (curl(&schemas, operation)) } }
        (answers(&schemas, described))
        @if schemas.is_exhausted() {
            p { "This page has no room for all members. The OpenAPI document has them." }
        }
        p { a href="/reference" { "All operations" } }
    }
}

fn operations(document: &Json) -> impl Iterator<Item = Operation<'_>> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        methods.map(|(method, described)| Operation {
            method: method.to_ascii_uppercase(),
            path: path.as_str(),
            described,
        })
    })
}

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

fn line(operation: &Operation<'_>) -> Markup {
    let described = operation.described;
    let summary = text(&described["summary"]);
    html! {
        tr {
            td {
                a href={ "/reference/" (text(&described["operationId"])) } {
                    @if described["x-contract"] == true { b { (summary) } } @else { (summary) }
                }
            }
            td { code { (operation.method) " " (operation.path) } }
        }
    }
}

fn callers(described: &Json) -> &'static str {
    if described["security"].as_array().is_some_and(Vec::is_empty) {
        return "No session is needed.";
    }
    match text(&described["x-least-role"]) {
        "viewer" => "For every member of the workspace.",
        "member" => "For the workspace's members, administrators and owners; not for viewers.",
        "admin" => "For the workspace's administrators and owners.",
        "owner" => "For the workspace's owners.",
        _ => "For everybody who is signed in.",
    }
}

/// Markup in a description is text: areas do not write pages.
fn markdown(source: &str) -> Markup {
    let events = Parser::new(source).map(|event| match event {
        Event::Html(markup) | Event::InlineHtml(markup) => Event::Text(markup),
        other => other,
    });
    let mut page = String::new();
    pulldown_cmark::html::push_html(&mut page, events);
    PreEscaped(page)
}

fn parameters(schemas: &Schemas<'_>, described: &Json) -> Markup {
    let all = described["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows = all.iter().map(|parameter| {
        let parameter = resolved(schemas.document, parameter);
        Member {
            path: format!("{} ({})", text(&parameter["name"]), text(&parameter["in"])),
            kind: schemas.kind(&parameter["schema"]),
            required: parameter["required"] == true,
            description: text(&parameter["description"]).to_owned(),
        }
    });
    html! {
        @if !all.is_empty() { h2 { "Parameters" } (table(rows)) }
    }
}

fn request_body(schemas: &Schemas<'_>, described: &Json) -> Markup {
    let content = described["requestBody"]["content"].as_object();
    html! {
        @for (media_type, media) in content.into_iter().flatten() {
            h2 { "Body" }
            p { code { (media_type) } }
            (table(schemas.members(&media["schema"]).into_iter()))
        }
    }
}

fn answers(schemas: &Schemas<'_>, described: &Json) -> Markup {
    let answers = described["responses"].as_object().into_iter().flatten();
    let (good, bad): (Vec<_>, Vec<_>) = answers.partition(|(status, _)| status.starts_with('2'));
    let codes = described["x-problem-codes"].as_array().into_iter().flatten().map(text);
    html! {
        @for (status, answer) in good {
            h2 { "Answer " (status) }
            @let schema = &answer["content"]["application/json"]["schema"];
            @if !schema.is_null() {
                p { (schemas.kind(schema)) }
                (table(schemas.members(schema).into_iter()))
            }
        }
        h2 { "Refusals" }
        table {
            @for (status, answer) in bad {
                tr { td { (status) } td { (text(&resolved(schemas.document, answer)["description"])) } }
            }
        }
        p {
            @for code in codes { a href={ "/problems/" (code) } { code { (code) } } " " }
        }
    }
}

fn table(rows: impl Iterator<Item = Member>) -> Markup {
    html! {
        table {
            @for Member { path, kind, required, description } in rows {
                tr {
                    td { code { (path) } }
                    td { (kind) @if !required { " · optional" } }
                    td { (markdown(&description)) }
                }
            }
        }
    }
}
