//! Pages of problem codes.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use super::cached;
use super::layout::page;
use super::navigation::Navigation;
use crate::http::code::{self, Code};
use crate::http::extract::SinglePathParameter;
use crate::http::problem::Refusal;
use assurance_service::app::App;

/// Returns the page that explains a problem code.
pub(in crate::http) async fn problem(
    State(app): State<App>,
    SinglePathParameter(code): SinglePathParameter,
) -> Result<Response, Refusal> {
    let body = match Code::ALL.into_iter().find(|known| known.as_str() == code) {
        Some(known) => explanation(known),
        None => {
            let users = operations_with(&app, &code);
            if users.is_empty() {
                return Err(Refusal::not_found());
            }
            of_operations(&code, &users)
        }
    };
    let title = code::title(&code);
    cached(&app, &format!("problems/{code}"), move |document| {
        Some(page(&title, &Navigation::new(document, ""), &body))
    })
    .await
}

fn explanation(code: Code) -> Markup {
    html! {
        p { "Status " (code.status().as_u16()) ", code " code { (code.as_str()) } "." }
        p { (code.explanation()) }
        p { a href="/guides/errors" { "How errors are reported" } }
    }
}

fn of_operations(code: &str, users: &[String]) -> Markup {
    html! {
        p {
            "Code " code { (code) } ", of "
            @for (at, user) in users.iter().enumerate() {
                @if at > 0 { ", " }
                a href={ "/reference/" (user) } { code { (user) } }
            }
            ". " code { "detail" } " and " code { "hint" } " say what is wrong and what to do."
        }
    }
}

fn operations_with(app: &App, code: &str) -> Vec<String> {
    let snapshot = app.registry.snapshot();
    let routes = snapshot.areas().flat_map(|area| area.manifest.routes.iter());
    routes
        .filter(|route| route.problem_codes.iter().any(|declared| declared == code))
        .map(|route| route.operation_id.clone())
        .collect()
}
