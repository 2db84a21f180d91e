//! Which areas answer, which versions they have, and moving between them.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;

use super::Operators;
use super::answers::{Area, Areas, Decided, Outcome, Page, Sent};
use super::parameters::{Parameters, body};
use super::token::Operator;
use super::trials;
use crate::app::areas::{self, InstallError, Received, RolledBack, Signature};
use crate::domain::deployment::{AuditLine, Deployment};
use crate::domain::manifest::Manifest;
use crate::http::code::Code;
use crate::http::problem::Refusal;
use crate::registry;
use crate::runtime::LoadError;

/// Every area: what answers here, what operators decided, what each node says.
pub(super) async fn list(State(operators): State<Operators>) -> Result<Json<Areas>, Refusal> {
    let areas = areas::overview(&operators.app).await?;
    let areas = areas.iter().map(|(name, area)| Area::of(name, area)).collect();
    Ok(Json(Areas { areas }))
}

/// One area, as [`list`] tells it.
pub(super) async fn one(
    State(operators): State<Operators>,
    Path(name): Path<String>,
) -> Result<Json<Area>, Refusal> {
    let areas = areas::overview(&operators.app).await?;
    let area = areas.get(&name).ok_or_else(Refusal::not_found)?;
    Ok(Json(Area::of(&name, area)))
}

/// Takes a component in; the body is its bytes.
pub(super) async fn deploy(
    State(operators): State<Operators>,
    Path(name): Path<String>,
    operator: Operator,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    component: Result<Bytes, BytesRejection>,
) -> Result<Json<Sent>, Refusal> {
    let known = ["activate", "force", "canary", "workspaces", "shadow"];
    let mut parameters = Parameters::of(query.as_deref(), &known)?;
    let then = trials::then(&mut parameters)?;
    let (signature, force) = (signature(&headers)?, parameters.text("force"));
    let app = operators.app;
    let component = whole(component, app.config.limits.max_component_bytes)?;
    let received = Received { area: name.clone(), component, signature, then, force };
    let deployed = areas::deploy(&app, &operator.name, received).await.map_err(refused)?;
    let snapshot = app.registry.snapshot();
    Ok(Json(Sent::of(deployed, snapshot.area(&name).map(Arc::as_ref))))
}

fn whole(component: Result<Bytes, BytesRejection>, most: u64) -> Result<Bytes, Refusal> {
    component.map_err(|rejected| match rejected.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::new(
            Code::PayloadTooLarge,
            format!("A component may have {most} bytes (limits.max_component_bytes)."),
        ),
        _ => Refusal::new(Code::MalformedRequest, "The component did not arrive whole."),
    })
}

/// Who vouches for the component, as two headers say.
fn signature(headers: &HeaderMap) -> Result<Option<Signature>, Refusal> {
    const NAMES: [&str; 2] = ["x-area-publisher", "x-area-signature"];
    let [publisher, signature] =
        NAMES.map(|name| headers.get(name).and_then(|value| value.to_str().ok()));
    match (publisher, signature) {
        (None, None) => Ok(None),
        (Some(publisher), Some(signature)) => {
            Ok(Some(Signature { publisher: publisher.to_owned(), signature: signature.to_owned() }))
        }
        (None, Some(_)) => Err(Refusal::invalid_one(NAMES[0], "goes with X-Area-Signature")),
        (Some(_), None) => Err(Refusal::invalid_one(NAMES[1], "goes with X-Area-Publisher")),
    }
}

/// Takes an area out; what it has stored stays.
pub(super) async fn remove(
    State(operators): State<Operators>,
    Path(name): Path<String>,
    operator: Operator,
    RawQuery(query): RawQuery,
) -> Result<Json<Decided>, Refusal> {
    let mut parameters = Parameters::of(query.as_deref(), &["reason", "force"])?;
    let (reason, force) = (parameters.text("reason"), parameters.boolean("force", false)?);
    let (app, who) = (&operators.app, &operator.name);
    let removed = areas::remove(app, who, &name, reason.as_deref(), force).await;
    Ok(Json(Decided::removed(&removed.map_err(refused)?)))
}

/// Which version is to answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Activation {
    /// The version on trial, where none is named.
    digest: Option<String>,
    reason: Option<String>,
    /// Why it may break clients.
    force: Option<String>,
}

/// Lets a version answer that is kept.
pub(super) async fn activate(
    State(operators): State<Operators>,
    Path(name): Path<String>,
    operator: Operator,
    sent: Bytes,
) -> Result<Json<Decided>, Refusal> {
    let wish: Activation = body(&sent)?;
    let app = operators.app;
    let activation = areas::Activation {
        area: &name,
        digest: wish.digest.as_deref(),
        why: wish.reason.as_deref(),
        force: wish.force.as_deref(),
    };
    let activated = areas::activate(&app, &operator.name, activation).await;
    Ok(Json(match activated.map_err(refused)? {
        Some(change) => Decided::changed(Outcome::Live, &change),
        None => Decided::just(Outcome::Unchanged),
    }))
}

/// Which version gets what it asks for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Approval {
    digest: String,
    reason: Option<String>,
}

/// Grants a version what it asks for.
pub(super) async fn approve(
    State(operators): State<Operators>,
    Path(name): Path<String>,
    operator: Operator,
    sent: Bytes,
) -> Result<Json<Decided>, Refusal> {
    let wish: Approval = body(&sent)?;
    let (app, reason) = (&operators.app, wish.reason.as_deref());
    let approved = areas::approve(app, &operator.name, &name, &wish.digest, reason).await;
    approved.map_err(refused)?;
    Ok(Json(Decided::just(Outcome::Approved)))
}

/// Why something is taken back.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Because {
    pub(super) reason: String,
}

/// Ends the canary that runs, or else lets the version answer that was live
/// before.
pub(super) async fn roll_back(
    State(operators): State<Operators>,
    Path(name): Path<String>,
    operator: Operator,
    sent: Bytes,
) -> Result<Json<Decided>, Refusal> {
    let wish: Because = body(&sent)?;
    let back = areas::roll_back(&operators.app, &operator.name, &name, &wish.reason).await;
    Ok(Json(match back.map_err(refused)? {
        RolledBack::Live(change) => Decided::changed(Outcome::RolledBack, &change),
        RolledBack::Trial(trial) => Decided::tried(Outcome::Stopped, trial),
    }))
}

/// The versions an area had, newest first.
pub(super) async fn history(
    State(operators): State<Operators>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<Page<Deployment>>, Refusal> {
    let page = Parameters::of(query.as_deref(), &["limit", "cursor"])?.page()?;
    let items = areas::history(&operators.app, &name, page.before(), page.limit).await?;
    let next_cursor = page.next(&items, |version| version.number);
    Ok(Json(Page { items, next_cursor }))
}

/// What a version said it is.
pub(super) async fn manifest(
    State(operators): State<Operators>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<Manifest>, Refusal> {
    let digest = Parameters::of(query.as_deref(), &["digest"])?.text("digest");
    let text = areas::manifest(&operators.app, &name, digest.as_deref()).await.map_err(refused)?;
    Ok(Json(serde_json::from_str(&text).map_err(Refusal::internal)?))
}

/// Who did what, newest first.
pub(super) async fn audit_log(
    State(operators): State<Operators>,
    RawQuery(query): RawQuery,
) -> Result<Json<Page<AuditLine>>, Refusal> {
    let mut parameters = Parameters::of(query.as_deref(), &["area", "limit", "cursor"])?;
    let area = parameters.text("area");
    let page = parameters.page()?;
    let lines =
        areas::audit_log(&operators.app, area.as_deref(), page.before(), page.limit).await?;
    let next_cursor = page.next(&lines, |line| line.id);
    Ok(Json(Page { items: lines, next_cursor }))
}

/// The component's own faults are the sender's to mend; all else is ours.
pub(super) fn refused(error: InstallError) -> Refusal {
    let code = match error {
        InstallError::Load(LoadError::Host(source)) => return Refusal::internal(source),
        InstallError::Store(source) => return source.into(),
        InstallError::Damaged { .. } | InstallError::Missing { .. } => {
            return Refusal::internal(error);
        }
        InstallError::Indexes { source: crate::store::Error::UniqueConflict { .. }, .. } => {
            Code::Conflict
        }
        InstallError::Indexes { .. } => return Refusal::internal(error),
        InstallError::Distrusted(_) => Code::SignatureRefused,
        InstallError::Incompatible(_) | InstallError::NoCanary { .. } => Code::IncompatibleVersion,
        InstallError::NeedsApproval { .. } => Code::ApprovalNeeded,
        InstallError::Refused(registry::Refusal::NotLive(_))
        | InstallError::NotKnown { .. }
        | InstallError::NoTrial { .. } => Code::NotFound,
        InstallError::Refused(
            registry::Refusal::RouteTaken { .. }
            | registry::Refusal::OperationTaken { .. }
            | registry::Refusal::EventTaken { .. },
        )
        | InstallError::DependedOn { .. }
        | InstallError::NothingBefore { .. }
        | InstallError::OtherTrial { .. }
        | InstallError::AnswersAlready { .. }
        | InstallError::NotWaiting { .. }
        | InstallError::Overtaken { .. } => Code::Conflict,
        InstallError::Load(_)
        | InstallError::Refused(_)
        | InstallError::Rehearsal { .. }
        | InstallError::OtherArea { .. } => Code::ValidationFailed,
    };
    Refusal::new(code, error.to_string())
}
