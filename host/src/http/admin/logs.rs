//! What an area's guests said last on this node, and how its last calls
//! failed.

use axum::Json;
use axum::extract::{Path, RawQuery, State};

use super::Operators;
use super::parameters::Parameters;
use crate::http::problem::Refusal;
use crate::journal;

/// The last lines; with a cursor, what came since.
pub(super) async fn logs(
    State(operators): State<Operators>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<journal::Page>, Refusal> {
    let page = Parameters::of(query.as_deref(), &["limit", "cursor"])?.page()?;
    let app = &operators.app;
    match app.runtime.journals().find(&name) {
        Some(journal) => Ok(Json(journal.page(page.cursor, page.limit as usize))),
        None if app.registry.snapshot().area(&name).is_some() => Ok(Json(journal::Page::empty())),
        None => Err(Refusal::not_found()),
    }
}
