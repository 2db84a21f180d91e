//! Frame of every page: head, links between sections, navigation. Pages have no
//! scripts and load no other resources.

use std::sync::LazyLock;

use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use super::guides;
use super::navigation::Navigation;

/// Title of the first page, and the end of every other title.
pub(super) const SERVICE: &str = "Workspace Assurance Service";

/// Style sheet of all pages. It is inline; the content security policy contains
/// its hash.
const STYLE: &str = include_str!("style.css");

const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 \
    16'%3E%3Cpath fill='%230969da' d='M8 0l7 2.5V8c0 4-3 6.6-7 8-4-1.4-7-4-7-8V2.5z'/%3E%3Cpath \
    fill='none' stroke='%23fff' stroke-width='2' d='M4.5 8l2.5 2.5L11.5 6'/%3E%3C/svg%3E";

/// Content security policy: allows only the style sheet and the inline icon.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let hash = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy)
        .unwrap_or(const { HeaderValue::from_static("default-src 'none'") })
});

/// Returns a whole documentation page as HTML.
pub(super) fn page(title: &str, navigation: &Navigation, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                title {
                    (title)
                    @if title != SERVICE { " · " (SERVICE) }
                }
                link rel="icon" href=(ICON);
                style { (PreEscaped(STYLE)) }
            }
            body {
                a class="skip" href="#main" { "Skip to the content" }
                header {
                    a class="title" href="/" { (SERVICE) }
                    (sections())
                }
                div class="page" {
                    main id="main" { h1 { (title) } (body) }
                    nav class="side" aria-label="Pages" { (side(navigation)) }
                }
            }
        }
    };
    page.into_string()
}

fn sections() -> Markup {
    html! {
        nav aria-label="Sections" {
            ul {
                li { a href="/reference" { "Reference" } }
                li { a href="/reference#events" { "Events" } }
                li { a href="/guides" { "Guides" } }
                li { a href="/openapi.json" { "OpenAPI" } }
            }
        }
    }
}

fn side(navigation: &Navigation) -> Markup {
    let current = |address: &str| (navigation.current == address).then_some("page");
    let link = |address: &str, name: &str| {
        html! { a href=(address) aria-current=[current(address)] { (name) } }
    };
    html! {
        h2 { "Guides" }
        ul {
            @for guide in guides::ALL {
                li { (link(&guide.address(), guide.title)) }
            }
        }
        h2 { "Areas" }
        ul {
            @for area in &navigation.areas {
                li {
                    (link(&format!("/reference#{area}"), area))
                    @if navigation.area.as_ref() == Some(area) {
                        ul {
                            @for (name, title) in &navigation.pages {
                                li { (link(&format!("/reference/{name}"), title)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the response with a rendered page and its content security policy.
pub(super) fn respond(page: Bytes) -> Response {
    let mut response = Html(page).into_response();
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    response
}
