//! What the rest of the service is told of an import. Findings are told in
//! lists, one for each step: a first scan may bring thousands.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use serde_json::{Map, Value};

use crate::finding::Finding;
use crate::severity::Severity;
use crate::state::State;

/// Why a file, or a run in it, was not imported.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ImportError {
    pub(super) upload_id: Option<Uuid>,
    pub(super) code: String,
    pub(super) detail: String,
}

/// How an import ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ImportStatus {
    /// What could be imported was.
    Succeeded,
    /// There were files, and none could be.
    Failed,
}

/// Told when an audit's findings are imported, also when there were none.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FindingsImported {
    pub(super) audit_id: Uuid,
    pub(super) status: ImportStatus,
    pub(super) counts: BTreeMap<&'static str, i64>,
    pub(super) facts: Map<String, Value>,
    pub(super) warnings: Vec<String>,
    pub(super) errors: Vec<ImportError>,
}

impl Event for FindingsImported {
    const NAME: &'static str = "audit.findings_imported";
}

/// A finding, as it is told of.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Told {
    finding_id: Uuid,
    state: State,
    risk_severity: Severity,
    tool: String,
    rule_id: String,
    title: String,
}

impl Told {
    pub(super) fn of(finding_id: Uuid, finding: &Finding) -> Self {
        Self {
            finding_id,
            state: finding.state,
            risk_severity: finding.rating.risk_severity,
            tool: finding.tool.clone(),
            rule_id: finding.rule_id.clone(),
            title: finding.title.clone(),
        }
    }
}

/// Findings of one audit to which the same happened.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ToldFindings {
    audit_id: Uuid,
    repository_id: Uuid,
    /// At most 200; an audit tells as often as it needs.
    findings: Vec<Told>,
}

/// Told when an audit sees findings for the first time.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FindingsCreated(ToldFindings);

impl Event for FindingsCreated {
    const NAME: &'static str = "finding.created";
}

/// Told when an audit sees findings again that were settled.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FindingsReopened(ToldFindings);

impl Event for FindingsReopened {
    const NAME: &'static str = "finding.reopened";
}

/// Told when an audit sees that open findings are gone.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FindingsVerified(ToldFindings);

impl Event for FindingsVerified {
    const NAME: &'static str = "finding.verified";
}

pub(super) fn created(ctx: &JobCtx, audit_id: Uuid, repository_id: Uuid, findings: Vec<Told>) {
    if !findings.is_empty() {
        ctx.publish(FindingsCreated(ToldFindings { audit_id, repository_id, findings }));
    }
}

pub(super) fn reopened(ctx: &JobCtx, audit_id: Uuid, repository_id: Uuid, findings: Vec<Told>) {
    if !findings.is_empty() {
        ctx.publish(FindingsReopened(ToldFindings { audit_id, repository_id, findings }));
    }
}

pub(super) fn verified(ctx: &JobCtx, audit_id: Uuid, repository_id: Uuid, findings: Vec<Told>) {
    if !findings.is_empty() {
        ctx.publish(FindingsVerified(ToldFindings { audit_id, repository_id, findings }));
    }
}
