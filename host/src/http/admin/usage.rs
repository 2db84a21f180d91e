//! Who uses how much on this node.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::Operators;
use crate::budgets::{Standing, Usage};

/// Workspaces told of: those that use most.
const WORKSPACES: usize = 50;

/// Every area, and the workspaces that use most.
pub(super) async fn usage(State(operators): State<Operators>) -> Json<Value> {
    let budgets = operators.app.runtime.budgets();
    let areas: Vec<Value> = budgets.areas().iter().map(standing).collect();
    let workspaces = budgets.busiest_workspaces(WORKSPACES);
    let workspaces: Vec<Value> = workspaces.iter().map(standing).collect();
    Json(json!({ "areas": areas, "workspaces": workspaces }))
}

fn standing(one: &Standing) -> Value {
    json!({
        "name": one.name,
        "budget": one.budget,
        "running": one.running,
        "memory_bytes": one.memory_bytes,
        "call_memory_peak_bytes": one.call_memory_peak_bytes,
        "this_minute": used(one.this_minute),
        "last_minute": used(one.last_minute),
        "refused_this_minute": one.refused,
    })
}

fn used(usage: Usage) -> Value {
    json!({
        "calls": usage.calls,
        "cpu_ms": usage.cpu_us / 1_000,
        "host_calls": usage.host_calls,
        "documents": usage.documents,
    })
}
