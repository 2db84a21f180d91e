//! Usage of areas and workspaces on this node.

use axum::Json;
use axum::extract::State;

use super::OperatorsState;
use super::views::{BudgetView, BudgetsView};

/// Number of workspaces in the report: those with the highest usage.
const WORKSPACES: usize = 50;

/// Returns the usage of every area and of the workspaces with the highest
/// usage, on this node.
pub(super) async fn usage(State(operators): State<OperatorsState>) -> Json<BudgetsView> {
    let budgets = operators.app.runtime.budgets();
    let areas = budgets.areas().iter().map(BudgetView::of).collect();
    let workspaces = budgets.busiest_workspaces(WORKSPACES);
    Json(BudgetsView { areas, workspaces: workspaces.iter().map(BudgetView::of).collect() })
}
