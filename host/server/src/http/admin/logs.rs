//! Last log entries of an area's guests on this node, and its last failed calls.

use axum::Json;
use axum::extract::{RawQuery, State};

use super::OperatorsState;
use super::areas::unknown;
use super::parameters::AdminQueryParams;
use crate::http::extract::SinglePathParameter;
use crate::http::problem::Refusal;
use assurance_core::area_log;

/// Returns the last log lines and failed calls of an area on this node; with a
/// cursor, those since the cursor.
pub(super) async fn logs(
    State(operators): State<OperatorsState>,
    SinglePathParameter(name): SinglePathParameter,
    RawQuery(query): RawQuery,
) -> Result<Json<area_log::AreaLogPage>, Refusal> {
    let page = AdminQueryParams::of(query.as_deref(), &["limit", "cursor"])?.page()?;
    let app = &operators.app;
    match app.runtime.area_logs().find(&name) {
        Some(area_log) => Ok(Json(area_log.page(page.cursor, page.limit as usize))),
        None if app.registry.snapshot().area(&name).is_some() => {
            Ok(Json(area_log::AreaLogPage::empty()))
        }
        None => Err(unknown(&name)),
    }
}
