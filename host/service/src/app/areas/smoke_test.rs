//! Calls a version twice before it is stored: `describe` once more, and one
//! read operation, for a workspace that does not exist. Effects are discarded.
//! The version is refused if it faults or its manifest differs; a problem
//! response is not a fault.

use std::sync::Arc;

use rand::RngExt as _;
use uuid::Uuid;

use super::super::App;
use super::error::AreaActionError;
use crate::registry::AreaVersion;
use assurance_contract::CompiledRoute;
use assurance_core::domain::area::{CallContext, CallOrigin, Parameter, Request, RequestBody};
use assurance_core::domain::id::{UserId, WorkspaceId};
use assurance_core::domain::manifest::{BodyKind, Method, WorkspaceSource};
use assurance_work::{UnitOfWork, UnitOfWorkSpec};

/// Calls `describe` and one read operation of a version that is being deployed.
/// Returns an error if a call ends with a fault or the manifest differs.
pub(super) async fn smoke_test(app: &App, version: &AreaVersion) -> Result<(), AreaActionError> {
    let failed = |what: &str, error: &dyn std::fmt::Display| AreaActionError::SmokeTestFailed {
        area: version.manifest.name.clone(),
        call: what.to_owned(),
        problem: error.to_string(),
    };
    match version.code.describe().await {
        Err(error) if error.is_areas_fault() => return Err(failed("describe", &error)),
        Ok(Some(again)) if again != *version.manifest => {
            return Err(failed("describe", &"it describes itself differently each time"));
        }
        _ => {}
    }
    let Some(route) = version.routes.iter().find(|route| can_be_called(route)) else {
        return Ok(());
    };
    let request = request(app, route);
    let unit = unit(app, version, &request);
    match version.code.handle(unit, &request, route.deadline).await.result {
        Err(error) if error.is_areas_fault() => Err(failed(&route.route.operation_id, &error)),
        _ => Ok(()),
    }
}

/// Returns whether the smoke test can call the route: a GET without required
/// parameters.
fn can_be_called(contract: &CompiledRoute) -> bool {
    let route = &contract.route;
    route.method == Method::Get
        && route.workspace == WorkspaceSource::Path
        && route.body == BodyKind::None
        && route.parameters.iter().all(|parameter| !parameter.required)
}

fn request(app: &App, contract: &CompiledRoute) -> Request {
    let route = &contract.route;
    let defaults = route.parameters.iter().filter_map(|parameter| {
        let value = parameter.default.as_ref()?.to_string();
        Some(Parameter { name: parameter.name.clone(), value })
    });
    Request {
        call: CallContext {
            workspace: WorkspaceId(Uuid::nil()),
            now: app.clock.now(),
            seed: rand::rng().random(),
            origin: CallOrigin::SmokeTest,
        },
        user: UserId(Uuid::nil()),
        role: route.least_role,
        operation: route.operation_id.clone(),
        parameters: defaults.collect(),
        body: RequestBody::None,
        idempotency_key: None,
        if_match: None,
        link: None,
        base_url: app.base_url.clone(),
    }
}

fn unit(app: &App, version: &AreaVersion, request: &Request) -> UnitOfWork {
    let spec = UnitOfWorkSpec {
        actor: Some(request.user),
        ..UnitOfWorkSpec::of(&version.scope, request.call.clone())
    };
    UnitOfWork::new(app.store.clone(), Arc::clone(&app.keys), spec)
}
