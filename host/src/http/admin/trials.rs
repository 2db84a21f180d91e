//! Trying a version beside the live one.

use std::collections::BTreeSet;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use serde::Deserialize;

use super::Operators;
use super::answers::{self, Decided, Differences, Outcome};
use super::areas::{Because, refused};
use super::parameters::{Parameters, body};
use super::token::Operator;
use crate::app::areas::{self, InstallError, Then, TrialWish};
use crate::domain::id::WorkspaceId;
use crate::domain::trial::{Mode, Share};
use crate::http::problem::Refusal;
use crate::registry;

/// The share of requests that a shadow answers, where nobody says, in percent.
const SHADOWED: f64 = 10.0;

/// Which version is to answer for some workspaces, and for which.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Canary {
    digest: String,
    /// Percent.
    share: Option<f64>,
    #[serde(default)]
    workspaces: Vec<String>,
    reason: Option<String>,
}

/// Lets a version answer for some workspaces that is kept.
pub(super) async fn canary(
    State(operators): State<Operators>,
    Path(area): Path<String>,
    operator: Operator,
    sent: Bytes,
) -> Result<Json<Decided>, Refusal> {
    let Canary { digest, share, workspaces, reason: why } = body(&sent)?;
    let ids = workspaces.iter().map(|id| workspace("/workspaces", id));
    let (share, workspaces) = some("/share", share, ids.collect::<Result<_, _>>()?)?;
    let wish = TrialWish { area, digest, mode: Mode::Canary, share, workspaces, why };
    begin(&operators, &operator, &wish).await
}

/// Which version is to answer copies of requests, and of which share.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shadow {
    digest: String,
    /// Percent.
    share: Option<f64>,
    reason: Option<String>,
}

/// Lets a version answer copies of requests that is kept.
pub(super) async fn shadow(
    State(operators): State<Operators>,
    Path(area): Path<String>,
    operator: Operator,
    sent: Bytes,
) -> Result<Json<Decided>, Refusal> {
    let Shadow { digest, share, reason: why } = body(&sent)?;
    let share = Share::of_percent(share.unwrap_or(SHADOWED));
    let share = share.ok_or_else(|| out_of_bounds("/share"))?;
    let workspaces = BTreeSet::new();
    let wish = TrialWish { area, digest, mode: Mode::Shadow, share, workspaces, why };
    begin(&operators, &operator, &wish).await
}

async fn begin(
    operators: &Operators,
    operator: &Operator,
    wish: &TrialWish,
) -> Result<Json<Decided>, Refusal> {
    let begun = areas::begin_trial(&operators.app, &operator.name, wish).await;
    Ok(Json(Decided::tried(answers::begun(wish.mode), begun.map_err(refused)?)))
}

/// How the answers of the area's shadow differ, as this node has seen.
pub(super) async fn compared(
    State(operators): State<Operators>,
    Path(area): Path<String>,
) -> Result<Json<Differences>, Refusal> {
    let snapshot = operators.app.registry.snapshot();
    let here = snapshot.trial(&area).filter(|here| here.trial.mode == Mode::Shadow);
    let here = here.ok_or_else(|| refused(InstallError::NoTrial { area }))?;
    Ok(Json(Differences::of(here)))
}

/// Ends a trial; the live version answers everybody.
pub(super) async fn stop(
    State(operators): State<Operators>,
    Path(area): Path<String>,
    operator: Operator,
    sent: Bytes,
) -> Result<Json<Decided>, Refusal> {
    let Because { reason } = body(&sent)?;
    let stopped = areas::stop_trial(&operators.app, &operator.name, &area, &reason).await;
    Ok(Json(Decided::tried(Outcome::Stopped, stopped.map_err(refused)?)))
}

/// What is done with a component that is sent: `activate`, or `canary` and
/// `workspaces`, or `shadow`.
pub(super) fn then(parameters: &mut Parameters) -> Result<Then, Refusal> {
    if let Some(share) = parameters.text("shadow") {
        let share = share.parse().ok().and_then(Share::of_percent);
        let share = share.ok_or_else(|| out_of_bounds("shadow"))?;
        return Ok(Then::Try(Mode::Shadow, share, BTreeSet::new()));
    }
    let share = parameters.text("canary").map(|text| text.parse());
    let share = share.transpose().map_err(|_| out_of_bounds("canary"))?;
    let listed = parameters.text("workspaces").unwrap_or_default();
    let listed = listed.split(',').filter(|id| !id.is_empty());
    let ids: BTreeSet<WorkspaceId> =
        listed.map(|id| workspace("workspaces", id)).collect::<Result<_, _>>()?;
    if share.is_some() || !ids.is_empty() {
        let (share, workspaces) = some("canary", share, ids)?;
        return Ok(Then::Try(Mode::Canary, share, workspaces));
    }
    let activate = parameters.boolean("activate", true)?;
    Ok(if activate { Then::Activate } else { Then::Wait })
}

/// A share, or workspaces, or both.
fn some(
    at: &str,
    percent: Option<f64>,
    workspaces: BTreeSet<WorkspaceId>,
) -> Result<(Share, BTreeSet<WorkspaceId>), Refusal> {
    if percent.is_none() && workspaces.is_empty() {
        return Err(Refusal::invalid_one(at, "is needed, or a list of workspaces"));
    }
    let share = Share::of_percent(percent.unwrap_or_default()).ok_or_else(|| out_of_bounds(at))?;
    Ok((share, workspaces))
}

fn out_of_bounds(at: &str) -> Refusal {
    Refusal::invalid_one(at, "must be a percentage from 0 to 100 with two decimals at most")
}

fn workspace(at: &str, id: &str) -> Result<WorkspaceId, Refusal> {
    let id = registry::canonical_uuid(id).map(WorkspaceId);
    id.ok_or_else(|| Refusal::invalid_one(at, "must be ids of workspaces"))
}
