//! Who uses how much on this node.

use axum::Json;
use axum::extract::State;

use super::Operators;
use super::answers::{Standing, Used};

/// Workspaces told of: those that use most.
const WORKSPACES: usize = 50;

/// Every area, and the workspaces that use most.
pub(super) async fn usage(State(operators): State<Operators>) -> Json<Used> {
    let budgets = operators.app.runtime.budgets();
    let areas = budgets.areas().iter().map(Standing::of).collect();
    let workspaces = budgets.busiest_workspaces(WORKSPACES);
    Json(Used { areas, workspaces: workspaces.iter().map(Standing::of).collect() })
}
