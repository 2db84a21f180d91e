//! Guides of `host/docs`, as HTML pages and as Markdown for programs.

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use maud::html;

use super::cached;
use super::layout::page;
use super::markdown::guide;
use super::navigation::Navigation;
use crate::http::extract::SinglePathParameter;
use crate::http::problem::Refusal;
use assurance_service::app::App;

/// A guide for API clients.
#[derive(Debug)]
pub(super) struct Guide {
    name: &'static str,
    pub(super) title: &'static str,
    /// Summary of the guide in one line.
    pub(super) summary: &'static str,
    text: &'static str,
}

impl Guide {
    /// Returns the path of the guide's page.
    pub(super) fn address(&self) -> String {
        format!("/guides/{}", self.name)
    }
}

macro_rules! guides {
    ($($name:literal: $title:literal, $summary:literal;)+) => {
        /// All guides, in reading order.
        pub(super) const ALL: &[Guide] = &[$(Guide {
            name: $name,
            title: $title,
            summary: $summary,
            text: include_str!(concat!("../../../../docs/", $name, ".md")),
        }),+];
    };
}

guides! {
    "authentication": "Authentication", "Sessions, CSRF token, access tokens, second factor, roles";
    "errors": "Errors", "Problem documents, codes, what to retry, rate limits";
    "idempotency": "Idempotency", "Safe retries, concurrent changes";
    "paging": "Paging", "Lists and cursors";
    "uploads": "Uploads", "Files for audits and evidence";
    "webhooks": "Webhooks", "Events, signatures, retries";
    "tour": "Tour", "All 22 operations of the contract, with commands to run";
}

/// Returns the page that lists all guides.
pub(in crate::http) async fn index(State(app): State<App>) -> Result<Response, Refusal> {
    cached(&app, "guides", |document| {
        let body = html! {
            ul {
                @for guide in ALL {
                    li { a href=(guide.address()) { (guide.title) } ": " (guide.summary) "." }
                }
            }
        };
        Some(page("Guides", &Navigation::new(document, "/guides"), &body))
    })
    .await
}

/// Returns one guide as a page, or as Markdown if the name ends in `.md`.
pub(in crate::http) async fn show(
    State(app): State<App>,
    SinglePathParameter(name): SinglePathParameter,
) -> Result<Response, Refusal> {
    let wanted = name.strip_suffix(".md").unwrap_or(&name);
    let found = ALL.iter().find(|guide| guide.name == wanted).ok_or_else(Refusal::not_found)?;
    if name.ends_with(".md") {
        const MARKDOWN: HeaderValue = HeaderValue::from_static("text/markdown; charset=utf-8");
        return Ok(([(header::CONTENT_TYPE, MARKDOWN)], found.text).into_response());
    }
    cached(&app, &format!("guides/{name}"), move |document| {
        let navigation = Navigation::new(document, &found.address());
        Some(page(found.title, &navigation, &guide(found.text)))
    })
    .await
}
