//! Operators' endpoints for areas: list them, deploy versions, and choose the live version.

use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use serde::Deserialize;

use super::OperatorsState;
use super::parameters::{AdminQueryParams, RequestBytesResult, body, whole};
use super::token::AuthenticatedOperator;
use super::trials;
use super::views::{
    AreaView, AreasView, DecisionResultView, DeployResultView, OperatorActionEffectView, PageView,
    RefusalReasonView,
};
use crate::http::code::Code;
use crate::http::extract::SinglePathParameter;
use crate::http::problem::Refusal;
use assurance_core::domain::deployment::{AuditEntry, StoredVersion};
use assurance_core::domain::manifest::Manifest;
use assurance_runtime::LoadError;
use assurance_service::app::App;
use assurance_service::app::areas::{self, AreaActionError, AreaChange, DeployRequest, Signature};
use assurance_service::registry;

/// Lists every area: the version on this node, the operators' decision, and the state of each node.
pub(super) async fn list(
    State(operators): State<OperatorsState>,
) -> Result<Json<AreasView>, Refusal> {
    let areas = areas::overview(&operators.app).await?;
    let areas = areas.iter().map(|(name, area)| AreaView::of(name, area)).collect();
    Ok(Json(AreasView { areas }))
}

/// Returns one area: the version on this node, the operators' decision, and the state of each node.
pub(super) async fn one(
    State(operators): State<OperatorsState>,
    SinglePathParameter(name): SinglePathParameter,
) -> Result<Json<AreaView>, Refusal> {
    let areas = areas::overview(&operators.app).await?;
    let area = areas.get(&name).ok_or_else(|| unknown(&name))?;
    Ok(Json(AreaView::of(&name, area)))
}

/// Returns the refusal of a request for an area that does not exist and never did.
pub(super) fn unknown(area: &str) -> Refusal {
    let detail = format!("There is no area {area:?} here; `assurance area list` lists the areas.");
    Refusal::new(Code::NotFound, detail)
}

/// Deploys a component; the body is its bytes. With `dry_run`, only checks it.
pub(super) async fn deploy(
    State(operators): State<OperatorsState>,
    SinglePathParameter(name): SinglePathParameter,
    operator: AuthenticatedOperator,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    component: RequestBytesResult,
) -> Result<Json<DeployResultView>, Refusal> {
    let known = ["activate", "force", "canary", "workspaces", "shadow", "reason", "dry_run"];
    let mut parameters = AdminQueryParams::of(query.as_deref(), &known)?;
    let then = trials::then(&mut parameters)?;
    let (signature, is_dry) = (signature(&headers)?, parameters.boolean("dry_run", false)?);
    let (why, force) = (parameters.text("reason"), parameters.text("force"));
    let app = operators.app;
    let component = whole(component)?;
    let area = name.clone();
    let received = DeployRequest { area, component, signature, then, why, force };
    if is_dry {
        return Ok(Json(dry_run(&app, &received).await?));
    }
    let deployed = areas::deploy(&app, &operator.name, received).await.map_err(refused)?;
    let snapshot = app.registry.snapshot();
    Ok(Json(DeployResultView::of(deployed, snapshot.area(&name).map(Arc::as_ref))))
}

async fn dry_run(app: &App, received: &DeployRequest) -> Result<DeployResultView, Refusal> {
    let report = areas::dry_run(app, received).await.map_err(refused)?;
    let finding = |error: &AreaActionError| RefusalReasonView {
        code: code(error).unwrap_or(Code::InternalError).as_str(),
        detail: error.to_string(),
    };
    let findings = report.findings.iter().map(finding).collect();
    Ok(DeployResultView::dry(report.digest, report.report, findings))
}

/// Returns the component's signature from two headers; `None` if both are absent.
fn signature(headers: &HeaderMap) -> Result<Option<Signature>, Refusal> {
    const NAMES: [&str; 2] = ["x-area-publisher", "x-area-signature"];
    let [publisher, signature] =
        NAMES.map(|name| headers.get(name).and_then(|value| value.to_str().ok()));
    match (publisher, signature) {
        (None, None) => Ok(None),
        (Some(publisher), Some(signature)) => {
            Ok(Some(Signature { publisher: publisher.to_owned(), signature: signature.to_owned() }))
        }
        (None, Some(_)) => Err(Refusal::invalid_one(NAMES[0], "is required with X-Area-Signature")),
        (Some(_), None) => Err(Refusal::invalid_one(NAMES[1], "is required with X-Area-Publisher")),
    }
}

/// Removes an area from the live areas. Its data is kept.
pub(super) async fn remove(
    State(operators): State<OperatorsState>,
    SinglePathParameter(name): SinglePathParameter,
    operator: AuthenticatedOperator,
    RawQuery(query): RawQuery,
) -> Result<Json<DecisionResultView>, Refusal> {
    let mut parameters = AdminQueryParams::of(query.as_deref(), &["reason", "force"])?;
    let (reason, force) = (parameters.text("reason"), parameters.boolean("force", false)?);
    let (app, who) = (&operators.app, &operator.name);
    let removed = areas::remove(app, who, &name, reason.as_deref(), force).await;
    Ok(Json(DecisionResultView::removed(&removed.map_err(refused)?)))
}

/// Body of a request to make a stored version live.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ActivateBody {
    /// Digest of the version; `None` selects the version on trial.
    digest: Option<String>,
    reason: Option<String>,
    /// Reason for activating a version that may break clients; `None` refuses such a version.
    force: Option<String>,
}

/// Makes a stored version live.
pub(super) async fn activate(
    State(operators): State<OperatorsState>,
    SinglePathParameter(name): SinglePathParameter,
    operator: AuthenticatedOperator,
    sent: RequestBytesResult,
) -> Result<Json<DecisionResultView>, Refusal> {
    let wish: ActivateBody = body(sent)?;
    let app = operators.app;
    let activation = areas::ActivationRequest {
        area: &name,
        digest: wish.digest.as_deref(),
        why: wish.reason.as_deref(),
        force: wish.force.as_deref(),
    };
    let activated = areas::activate(&app, &operator.name, activation).await;
    Ok(Json(match activated.map_err(refused)? {
        Some(change) => DecisionResultView::changed(OperatorActionEffectView::Live, &change),
        None => DecisionResultView::just(OperatorActionEffectView::Unchanged),
    }))
}

/// Body of a request to approve the capabilities that a version asks for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApproveCapabilitiesBody {
    digest: String,
    reason: Option<String>,
}

/// Approves the capabilities that a version asks for.
pub(super) async fn approve(
    State(operators): State<OperatorsState>,
    SinglePathParameter(name): SinglePathParameter,
    operator: AuthenticatedOperator,
    sent: RequestBytesResult,
) -> Result<Json<DecisionResultView>, Refusal> {
    let wish: ApproveCapabilitiesBody = body(sent)?;
    let (app, reason) = (&operators.app, wish.reason.as_deref());
    let approved = areas::approve(app, &operator.name, &name, &wish.digest, reason).await;
    Ok(Json(DecisionResultView::approved(approved.map_err(refused)?)))
}

/// Body of a request to end a trial: the reason for the audit log.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StopTrialBody {
    pub(super) reason: String,
}

/// Body of a request to roll an area back: the reason for the audit log, and the version.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RollbackBody {
    reason: String,
    /// Version to roll back to: its digest, the first characters of the digest, or its number;
    /// `None` selects the version that was live before.
    to: Option<String>,
}

/// Rolls back to the named version. Without one, ends a running canary, or makes the former live
/// version live again.
pub(super) async fn roll_back(
    State(operators): State<OperatorsState>,
    SinglePathParameter(name): SinglePathParameter,
    operator: AuthenticatedOperator,
    sent: RequestBytesResult,
) -> Result<Json<DecisionResultView>, Refusal> {
    let RollbackBody { reason, to } = body(sent)?;
    let (app, who) = (&operators.app, &operator.name);
    let back = areas::roll_back(app, who, &name, &reason, to.as_deref()).await;
    Ok(Json(match back.map_err(refused)? {
        AreaChange::Live(change) => {
            DecisionResultView::changed(OperatorActionEffectView::RolledBack, &change)
        }
        AreaChange::Trial(trial) => {
            DecisionResultView::tried(OperatorActionEffectView::Stopped, trial)
        }
    }))
}

/// Lists the versions of an area, newest first.
pub(super) async fn history(
    State(operators): State<OperatorsState>,
    SinglePathParameter(name): SinglePathParameter,
    RawQuery(query): RawQuery,
) -> Result<Json<PageView<StoredVersion>>, Refusal> {
    let page = AdminQueryParams::of(query.as_deref(), &["limit", "cursor"])?.page()?;
    let read = areas::history(&operators.app, &name, page.before(), page.read_limit()).await?;
    Ok(Json(page.view(read, |version| version.number)))
}

/// Returns the manifest of one version of an area; by default, of the live version.
pub(super) async fn manifest(
    State(operators): State<OperatorsState>,
    SinglePathParameter(name): SinglePathParameter,
    RawQuery(query): RawQuery,
) -> Result<Json<Manifest>, Refusal> {
    let digest = AdminQueryParams::of(query.as_deref(), &["digest"])?.text("digest");
    let text = areas::manifest(&operators.app, &name, digest.as_deref()).await.map_err(refused)?;
    Ok(Json(serde_json::from_str(&text).map_err(Refusal::internal)?))
}

/// Returns the audit log of operators' decisions, newest first.
pub(super) async fn audit_log(
    State(operators): State<OperatorsState>,
    RawQuery(query): RawQuery,
) -> Result<Json<PageView<AuditEntry>>, Refusal> {
    let mut parameters = AdminQueryParams::of(query.as_deref(), &["area", "limit", "cursor"])?;
    let area = parameters.text("area");
    let page = parameters.page()?;
    let (app, limit) = (&operators.app, page.read_limit());
    let read = areas::audit_log(app, area.as_deref(), page.before(), limit).await?;
    Ok(Json(page.view(read, |line| line.id)))
}

/// Converts an installation error to a refusal: the error's problem code, or 500 if the host is at
/// fault.
pub(super) fn refused(error: AreaActionError) -> Refusal {
    match (code(&error), error) {
        (Some(code), error) => Refusal::new(code, error.to_string()),
        (None, AreaActionError::Load(LoadError::Host(source))) => Refusal::internal(source),
        (None, AreaActionError::Store(source)) => source.into(),
        (None, error) => Refusal::internal(error),
    }
}

/// Returns the problem code of an installation error; `None` if the host is at fault.
fn code(error: &AreaActionError) -> Option<Code> {
    Some(match error {
        AreaActionError::Load(LoadError::Host(_))
        | AreaActionError::Store(_)
        | AreaActionError::Damaged { .. }
        | AreaActionError::Missing { .. } => return None,
        AreaActionError::Indexes {
            source: assurance_store::Error::UniqueConflict { .. }, ..
        } => Code::Conflict,
        AreaActionError::Indexes { .. } => return None,
        AreaActionError::Distrusted(_) => Code::SignatureRefused,
        AreaActionError::Incompatible(_) | AreaActionError::NoCanary { .. } => {
            Code::IncompatibleVersion
        }
        AreaActionError::NeedsApproval { .. } => Code::ApprovalNeeded,
        AreaActionError::Refused(registry::RegistryError::NotLive(_))
        | AreaActionError::NoSuchArea(_)
        | AreaActionError::NotKnown { .. }
        | AreaActionError::NoneWaits(_)
        | AreaActionError::NoTrial(_) => Code::NotFound,
        AreaActionError::Refused(
            registry::RegistryError::RouteTaken { .. }
            | registry::RegistryError::PathConflict { .. }
            | registry::RegistryError::OperationTaken { .. }
            | registry::RegistryError::EventTaken { .. },
        )
        | AreaActionError::DependedOn { .. }
        | AreaActionError::NothingBefore(_)
        | AreaActionError::NeverLive { .. }
        | AreaActionError::Ambiguous { .. }
        | AreaActionError::OtherTrial { .. }
        | AreaActionError::AlreadyLive { .. }
        | AreaActionError::NotWaiting { .. }
        | AreaActionError::Overtaken(_)
        | AreaActionError::NotCaughtUp { .. } => Code::Conflict,
        AreaActionError::Load(_)
        | AreaActionError::Refused(_)
        | AreaActionError::SmokeTestFailed { .. }
        | AreaActionError::OtherArea { .. } => Code::ValidationFailed,
    })
}
