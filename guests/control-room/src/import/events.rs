//! Events of an import. Findings are published in lists, one for each step, because a first scan
//! may contain thousands.

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

/// Result of an import.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ImportStatus {
    /// Every valid file was imported.
    Succeeded,
    /// No file could be imported.
    Failed,
}

/// Published when an audit's findings are imported, also if there are none.
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

/// A finding in an event.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChangedFinding {
    finding_id: Uuid,
    state: State,
    risk_severity: Severity,
    tool: String,
    rule_id: String,
    title: String,
}

impl ChangedFinding {
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

/// Findings of one audit with the same change.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChangedFindings {
    audit_id: Uuid,
    repository_id: Uuid,
    /// At most 200; an audit publishes as many events as it needs.
    findings: Vec<ChangedFinding>,
}

/// Published for findings that an audit showed for the first time.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FindingsCreated(ChangedFindings);

impl Event for FindingsCreated {
    const NAME: &'static str = "finding.created";
}

/// Published for settled findings that an audit showed again.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FindingsReopened(ChangedFindings);

impl Event for FindingsReopened {
    const NAME: &'static str = "finding.reopened";
}

/// Published for open findings that an audit found gone.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FindingsVerified(ChangedFindings);

impl Event for FindingsVerified {
    const NAME: &'static str = "finding.verified";
}

pub(super) fn created(
    ctx: &JobCtx,
    audit_id: Uuid,
    repository_id: Uuid,
    findings: Vec<ChangedFinding>,
) {
    if !findings.is_empty() {
        ctx.publish(FindingsCreated(ChangedFindings { audit_id, repository_id, findings }));
    }
}

pub(super) fn reopened(
    ctx: &JobCtx,
    audit_id: Uuid,
    repository_id: Uuid,
    findings: Vec<ChangedFinding>,
) {
    if !findings.is_empty() {
        ctx.publish(FindingsReopened(ChangedFindings { audit_id, repository_id, findings }));
    }
}

pub(super) fn verified(
    ctx: &JobCtx,
    audit_id: Uuid,
    repository_id: Uuid,
    findings: Vec<ChangedFinding>,
) {
    if !findings.is_empty() {
        ctx.publish(FindingsVerified(ChangedFindings { audit_id, repository_id, findings }));
    }
}
