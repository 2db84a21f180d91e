//! Events of an import. Findings are published in lists, because a first scan may contain thousands
//! of findings.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use serde_json::{Map, Value};

use crate::finding::Finding;
use crate::severity::Severity;
use crate::state::FindingState;

/// Maximum number of findings in one event. Events have at most 1 MiB.
const MOST_LISTED: usize = 200;

/// Reason why a file, or a run in a file, was not imported.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ImportError {
    pub(super) upload_id: Option<Uuid>,
    pub(super) code: String,
    pub(super) detail: String,
}

/// Result of importing an audit's findings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ImportStatus {
    /// At least one run or evidence record was imported, or no file was refused.
    Succeeded,
    /// Files were refused, and no run or evidence record could be imported.
    Failed,
}

/// Published when the import of an audit's findings has ended, even if there are none.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FindingsImported {
    pub(super) audit_id: Uuid,
    pub(super) status: ImportStatus,
    pub(super) counts: BTreeMap<&'static str, i64>,
    pub(super) facts: Map<String, Value>,
    pub(super) warnings: Vec<String>,
    /// The first errors, at most 190; a warning has the number of the others.
    pub(super) errors: Vec<ImportError>,
}

event!(FindingsImported, "audit.findings_imported");

/// A finding in an event about several findings.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChangedFinding {
    finding_id: Uuid,
    state: FindingState,
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

/// Findings of one repository that an audit changed in the same way, as events list them.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChangedFindings {
    audit_id: Uuid,
    repository_id: Uuid,
    /// The changed findings, at most 200. An audit publishes as many events as it needs.
    findings: Vec<ChangedFinding>,
}

/// Published for findings that an audit reported for the first time.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FindingsCreated(pub(super) ChangedFindings);

event!(FindingsCreated, "finding.created");

/// Published for settled or remediated findings that an audit reopened, because scans report them.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FindingsReopened(pub(super) ChangedFindings);

event!(FindingsReopened, "finding.reopened");

/// Published for open findings that an audit verified as no longer reported.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FindingsVerified(pub(super) ChangedFindings);

event!(FindingsVerified, "finding.verified");

/// Publishes findings that an audit changed in the same way, in lists of at most 200, each as an
/// event that `event` makes of it.
pub(super) fn publish<E: Event>(
    ctx: &JobCtx,
    audit_id: Uuid,
    repository_id: Uuid,
    mut left: Vec<ChangedFinding>,
    event: fn(ChangedFindings) -> E,
) {
    while !left.is_empty() {
        let findings = left.drain(..left.len().min(MOST_LISTED)).collect();
        ctx.publish(event(ChangedFindings { audit_id, repository_id, findings }));
    }
}
