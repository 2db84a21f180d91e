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
    let here = here.ok_or_else(|| refused(AreaActionError::NoTrial(area)))?;
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
/// `shadow`. Refuses combinations and empty values, which would make the version live.
pub(super) fn then(parameters: &mut AdminQueryParams) -> Result<DeployAction, Refusal> {
    let (canary, shadow) = (canary_in(parameters)?, shadow_in(parameters)?);
    if canary.is_some() && shadow.is_some() {
        let message = "cannot be combined with canary or workspaces";
        return Err(Refusal::invalid_one("shadow", message));
    }
    let trial = canary.or(shadow);
    match (parameters.boolean("activate", trial.is_none())?, trial) {
        (true, None) => Ok(DeployAction::Activate),
        (false, None) => Ok(DeployAction::Wait),
        (false, Some(trial)) => Ok(trial),
        (true, Some(_)) => {
            let message = "cannot be true together with canary, workspaces or shadow";
            Err(Refusal::invalid_one("activate", message))
        }
    }
}

fn canary_in(parameters: &mut AdminQueryParams) -> Result<Option<DeployAction>, Refusal> {
    let (share, listed) = (parameters.sent("canary"), parameters.sent("workspaces"));
    if share.is_none() && listed.is_none() {
        return Ok(None);
    }
    let share = share.map(|text| text.parse::<f64>()).transpose();
    let share = share.map_err(|_| out_of_bounds("canary"))?;
    let listed = listed.unwrap_or_default();
    let listed = listed.split(',').filter(|id| !id.is_empty());
    let ids = listed.map(|id| workspace("workspaces", id)).collect::<Result<_, _>>()?;
    let (share, workspaces) = some("canary", share, ids)?;
    Ok(Some(DeployAction::Try(TrialMode::Canary, share, workspaces)))
}

fn shadow_in(parameters: &mut AdminQueryParams) -> Result<Option<DeployAction>, Refusal> {
    let Some(share) = parameters.sent("shadow") else { return Ok(None) };
    let share = share.parse().ok().and_then(TrialShare::of_percent);
    let share = share.ok_or_else(|| out_of_bounds("shadow"))?;
    Ok(Some(DeployAction::Try(TrialMode::Shadow, share, BTreeSet::new())))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn action(query: &str) -> Result<DeployAction, Refusal> {
        let known = ["activate", "canary", "workspaces", "shadow"];
        then(&mut AdminQueryParams::of(Some(query), &known)?)
    }

    #[test]
    fn a_deployment_is_live_only_if_nothing_else_is_named() {
        assert!(matches!(action(""), Ok(DeployAction::Activate)));
        assert!(matches!(action("activate=false"), Ok(DeployAction::Wait)));
        for query in ["canary=5", "activate=false&canary=5", "canary=5&workspaces="] {
            let is_canary = matches!(action(query), Ok(DeployAction::Try(TrialMode::Canary, ..)));
            assert!(is_canary, "{query}");
        }
        assert!(matches!(action("shadow=10"), Ok(DeployAction::Try(TrialMode::Shadow, ..))));
        let empty = ["activate=", "canary=", "workspaces=", "workspaces=,", "shadow="];
        for query in empty.into_iter().chain(["canary=5&shadow=10", "activate=true&canary=5"]) {
            assert!(action(query).is_err(), "{query}");
        }
    }
}
