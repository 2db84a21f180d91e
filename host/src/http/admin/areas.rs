//! Which areas answer, and swapping them.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use serde_json::{Value, json};

use super::Operators;
use crate::app::areas::{self, InstallError, Installed};
use crate::http::code::Code;
use crate::http::problem::Refusal;
use crate::registry;
use crate::registry::AreaVersion;
use crate::runtime::LoadError;

/// The live areas, by name.
pub(super) async fn list(State(operators): State<Operators>) -> Json<Value> {
    let snapshot = operators.app.registry.snapshot();
    Json(json!({"areas": snapshot.areas().map(|area| view(area)).collect::<Vec<_>>()}))
}

/// Takes a component in; the body is its bytes.
pub(super) async fn install(
    State(operators): State<Operators>,
    Path(name): Path<String>,
    component: Bytes,
) -> Result<Json<Value>, Refusal> {
    let app = operators.app;
    let installed =
        areas::install_and_keep(&app, &name, component.into()).await.map_err(refused)?;
    let (result, before) = match installed {
        Installed::Unchanged { .. } => ("unchanged", None),
        Installed::Live(change) => ("live", change.before),
    };
    let snapshot = app.registry.snapshot();
    Ok(Json(json!({
        "result": result,
        "area": snapshot.area(&name).map(|area| view(area)),
        "replaced": before.map(|area| view(&area)),
    })))
}

/// Takes an area out; what it has stored stays.
pub(super) async fn remove(
    State(operators): State<Operators>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let change = areas::remove(&operators.app, &name).await.map_err(refused)?;
    Ok(Json(json!({"result": "removed", "area": change.before.map(|area| view(&area))})))
}

fn view(area: &AreaVersion) -> Value {
    let manifest = &area.manifest;
    json!({
        "name": manifest.name,
        "version": manifest.version.to_string(),
        "summary": manifest.summary,
        "digest": area.digest,
        "capabilities": manifest.capabilities,
        "imports": area.imports,
        "operations": manifest.routes.iter().map(|route| &route.operation_id).collect::<Vec<_>>(),
        "events": manifest.publishes.iter().map(|event| &event.name).collect::<Vec<_>>(),
        "subscriptions": manifest.subscriptions,
        "jobs": manifest.jobs.iter().map(|job| &job.name).collect::<Vec<_>>(),
    })
}

/// The component's own faults are the sender's to mend; all else is ours.
fn refused(error: InstallError) -> Refusal {
    match error {
        InstallError::Load(LoadError::Host(source)) => Refusal::internal(source),
        InstallError::Refused(registry::Refusal::NotLive(_)) => {
            Refusal::new(Code::NotFound, error.to_string())
        }
        InstallError::Refused(
            registry::Refusal::RouteTaken { .. }
            | registry::Refusal::OperationTaken { .. }
            | registry::Refusal::EventTaken { .. },
        ) => Refusal::new(Code::Conflict, error.to_string()),
        InstallError::Indexes { source: crate::store::Error::UniqueConflict { .. }, .. } => {
            Refusal::new(Code::Conflict, error.to_string())
        }
        InstallError::Indexes { .. } | InstallError::Keep { .. } => Refusal::internal(error),
        InstallError::Load(_) | InstallError::Refused(_) | InstallError::OtherArea { .. } => {
            Refusal::new(Code::ValidationFailed, error.to_string())
        }
    }
}
