//! Operators' endpoints for trials of a version next to the live one.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;

use super::OperatorsState;
use super::areas::{StopTrialBody, refused};
use super::parameters::{AdminQueryParams, RequestBytesResult, body};
use super::token::AuthenticatedOperator;
use super::views::{self, DecisionResultView, OperatorActionEffectView, ShadowDifferencesView};
use crate::http::extract::SinglePathParameter;
use crate::http::problem::Refusal;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::trial::{TrialMode, TrialShare};
use assurance_service::app::areas::{self, AreaActionError, DeployAction, TrialRequest};

/// Default share of requests that a shadow receives, in percent.
const SHADOWED: f64 = 10.0;

/// Body of a request to start a canary: the version and its workspaces.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CanaryBody {
    digest: String,
    /// Share of the workspaces that the canary serves, in percent; `None` for the listed
    /// `workspaces` only.
    share: Option<f64>,
    #[serde(default)]
    workspaces: Vec<String>,
    reason: Option<String>,
}

/// Starts a canary: a stored version serves some workspaces.
pub(super) async fn canary(
    State(operators): State<OperatorsState>,
    SinglePathParameter(area): SinglePathParameter,
    operator: AuthenticatedOperator,
    sent: RequestBytesResult,
) -> Result<Json<DecisionResultView>, Refusal> {
    let CanaryBody { digest, share, workspaces, reason: why } = body(sent)?;
    let ids = workspaces.iter().map(|id| workspace("/workspaces", id));
    let (share, workspaces) = some("/share", share, ids.collect::<Result<_, _>>()?)?;
    let wish = TrialRequest { area, digest, mode: TrialMode::Canary, share, workspaces, why };
    begin(&operators, &operator, &wish).await
}

/// Body of a request to start a shadow: the version and its share of the requests.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShadowBody {
    digest: String,
    /// Share of the requests that are copied to the shadow, in percent; `None` means 10.
    share: Option<f64>,
    reason: Option<String>,
}

/// Starts a shadow: a stored version executes copies of requests.
pub(super) async fn shadow(
    State(operators): State<OperatorsState>,
    SinglePathParameter(area): SinglePathParameter,
    operator: AuthenticatedOperator,
    sent: RequestBytesResult,
) -> Result<Json<DecisionResultView>, Refusal> {
    let ShadowBody { digest, share, reason: why } = body(sent)?;
    let share = TrialShare::of_percent(share.unwrap_or(SHADOWED));
    let share = share.ok_or_else(|| out_of_bounds("/share"))?;
    let workspaces = BTreeSet::new();
    let wish = TrialRequest { area, digest, mode: TrialMode::Shadow, share, workspaces, why };
    begin(&operators, &operator, &wish).await
}

async fn begin(
    operators: &OperatorsState,
    operator: &AuthenticatedOperator,
    wish: &TrialRequest,
) -> Result<Json<DecisionResultView>, Refusal> {
    let begun = areas::begin_trial(&operators.app, &operator.name, wish).await;
    Ok(Json(DecisionResultView::tried(views::begun(wish.mode), begun.map_err(refused)?)))
}

/// Returns the differences between the responses of the area's shadow and the live version, as seen
/// by this node.
pub(super) async fn compared(
    State(operators): State<OperatorsState>,
    SinglePathParameter(area): SinglePathParameter,
) -> Result<Json<ShadowDifferencesView>, Refusal> {
    let snapshot = operators.app.registry.snapshot();
    let here = snapshot.trial(&area).filter(|here| here.trial.mode == TrialMode::Shadow);
    let here = here.ok_or_else(|| refused(AreaActionError::NoTrial { area }))?;
    Ok(Json(ShadowDifferencesView::of(here)))
}

/// Ends a trial; the live version serves every request.
pub(super) async fn stop(
    State(operators): State<OperatorsState>,
    SinglePathParameter(area): SinglePathParameter,
    operator: AuthenticatedOperator,
    sent: RequestBytesResult,
) -> Result<Json<DecisionResultView>, Refusal> {
    let StopTrialBody { reason } = body(sent)?;
    let stopped = areas::stop_trial(&operators.app, &operator.name, &area, &reason).await;
    Ok(Json(DecisionResultView::tried(
        OperatorActionEffectView::Stopped,
        stopped.map_err(refused)?,
    )))
}

/// Reads the action after a deployment from the query: `activate`, or `canary` and `workspaces`, or
/// `shadow`.
pub(super) fn then(parameters: &mut AdminQueryParams) -> Result<DeployAction, Refusal> {
    if let Some(share) = parameters.text("shadow") {
        let share = share.parse().ok().and_then(TrialShare::of_percent);
        let share = share.ok_or_else(|| out_of_bounds("shadow"))?;
        return Ok(DeployAction::Try(TrialMode::Shadow, share, BTreeSet::new()));
    }
    let share = parameters.text("canary").map(|text| text.parse());
    let share = share.transpose().map_err(|_| out_of_bounds("canary"))?;
    let listed = parameters.text("workspaces").unwrap_or_default();
    let listed = listed.split(',').filter(|id| !id.is_empty());
    let ids: BTreeSet<WorkspaceId> =
        listed.map(|id| workspace("workspaces", id)).collect::<Result<_, _>>()?;
    if share.is_some() || !ids.is_empty() {
        let (share, workspaces) = some("canary", share, ids)?;
        return Ok(DeployAction::Try(TrialMode::Canary, share, workspaces));
    }
    let activate = parameters.boolean("activate", true)?;
    Ok(if activate { DeployAction::Activate } else { DeployAction::Wait })
}

/// Returns the workspaces of a canary: a share, a list of workspaces, or both. Refuses a request
/// with neither.
fn some(
    at: &str,
    percent: Option<f64>,
    workspaces: BTreeSet<WorkspaceId>,
) -> Result<(TrialShare, BTreeSet<WorkspaceId>), Refusal> {
    if percent.is_none() && workspaces.is_empty() {
        return Err(Refusal::invalid_one(at, "is needed, or a list of workspaces"));
    }
    let share =
        TrialShare::of_percent(percent.unwrap_or_default()).ok_or_else(|| out_of_bounds(at))?;
    Ok((share, workspaces))
}

fn out_of_bounds(at: &str) -> Refusal {
    Refusal::invalid_one(at, "must be a percentage from 0 to 100 with two decimals at most")
}

fn workspace(at: &str, id: &str) -> Result<WorkspaceId, Refusal> {
    let id = assurance_contract::canonical_uuid(id).map(WorkspaceId);
    id.ok_or_else(|| Refusal::invalid_one(at, "must be ids of workspaces"))
}
