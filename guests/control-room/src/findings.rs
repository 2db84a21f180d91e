//! Operations that read findings, and the findings in responses.

use area_sdk::prelude::*;
use area_sdk::text::name;

use crate::decimal::fixed;
use crate::finding::Finding;
use crate::identity;
use crate::import::limits;
use crate::observation::{FindingLocation, SourceKind, SourceTool};
use crate::severity::{Severity, SeveritySource};
use crate::state::FindingState;

/// Disposition of a finding, derived from its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Disposition {
    /// The finding waits for a user's decision (`new`, `reopened`).
    Pending,
    /// The finding is confirmed and open (`triaged`, `in_progress`, `remediated`).
    Confirmed,
    /// An audit verified that the finding is fixed (`verified`).
    Resolved,
    /// The finding is a false positive or a duplicate.
    Dismissed,
    /// The risk of the finding is accepted.
    Accepted,
}

impl Disposition {
    fn of(state: FindingState) -> Self {
        match state {
            FindingState::New | FindingState::Reopened => Self::Pending,
            FindingState::Triaged | FindingState::InProgress | FindingState::Remediated => {
                Self::Confirmed
            }
            FindingState::Verified => Self::Resolved,
            FindingState::FalsePositive | FindingState::Duplicate => Self::Dismissed,
            FindingState::AcceptedRisk => Self::Accepted,
        }
    }
}

/// A finding as the control room returns it; the list of findings adds members to it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RecurringFinding")]
pub(crate) struct FindingSummary {
    /// Share of the repository's architecture context that the catalog knows: 0.25 without a
    /// service, 0.60 with a service, 0.80 with a service and its group.
    architecture_confidence: String,
    architecture_disposition: Disposition,
    /// Impact of the finding: its severity, or one band above it if the repository is exposed.
    architecture_impact: Severity,
    /// Id of the latest audit that reported the finding.
    audit_id: Uuid,
    /// Whether the service, and not a user, made the finding's latest transition.
    auto_disposition: bool,
    /// Component to which the finding belongs: the package URL; without one, the service or the
    /// repository.
    component_identity: String,
    cvss_score: Option<String>,
    /// Revision of the code that the latest scan which reported the finding checked.
    evidence_revision: Option<String>,
    fingerprint_algorithm_version: String,
    id: Uuid,
    identity_fingerprint: String,
    last_seen_at: Timestamp,
    lifecycle_started_at: Timestamp,
    lifecycle_state: FindingState,
    lifecycle_updated_at: Timestamp,
    lifecycle_version: i64,
    locations: Vec<FindingLocation>,
    owner_id: Option<Uuid>,
    repository_id: Uuid,
    risk_severity: Severity,
    /// Risk of the finding: severity (the CVSS score, or 9.5, 8.0, 5.5, 2.0, 0.0 for the bands)
    /// times exposure (1.0; plus 0.2 if a service is built from the repository, plus 0.3 if one
    /// runs in production, plus 0.1 or 0.3 if one handles confidential or restricted data) times
    /// recurrence (1.0; plus 0.1 for each further audit that reported the finding, up to 1.5).
    risk_total: String,
    rule_id: String,
    /// Severity of the finding as the scanner writes it.
    scanner_severity: String,
    severity_source: SeveritySource,
    /// Due date of the finding: 7, 30, 90 or 120 days after the beginning of its lifecycle, by
    /// severity; null if the finding is settled or has severity `none`.
    sla_due_at: Option<Timestamp>,
    source_family: SourceKind,
    source_tools: Vec<SourceTool>,
    state: FindingState,
    title: String,
    tool: String,
}

impl From<Stored<Finding>> for FindingSummary {
    fn from(stored: Stored<Finding>) -> Self {
        let id = stored.uuid();
        let finding = stored.value;
        Self {
            architecture_confidence: fixed(finding.architecture_confidence_percent, 2),
            architecture_disposition: Disposition::of(finding.state),
            architecture_impact: finding.architecture_impact,
            audit_id: finding.audit_id,
            auto_disposition: finding.auto_disposition,
            component_identity: finding.component_identity,
            cvss_score: finding.rating.cvss_tenths.map(|tenths| fixed(tenths, 1)),
            evidence_revision: finding.evidence_revision,
            fingerprint_algorithm_version: identity::ALGORITHM.to_owned(),
            id,
            identity_fingerprint: finding.identity_fingerprint,
            last_seen_at: finding.last_seen_at,
            lifecycle_started_at: finding.lifecycle_started_at,
            lifecycle_state: finding.state,
            lifecycle_updated_at: finding.lifecycle_updated_at,
            lifecycle_version: finding.lifecycle_version,
            locations: finding.locations,
            owner_id: finding.owner_id,
            repository_id: finding.repository_id,
            risk_severity: finding.rating.risk_severity,
            risk_total: fixed(finding.risk_rank, 2),
            rule_id: finding.rule_id,
            scanner_severity: finding.rating.scanner_severity,
            severity_source: finding.rating.severity_source,
            sla_due_at: finding.sla_due_at,
            source_family: finding.source_family,
            source_tools: finding.source_tools,
            state: finding.state,
            title: finding.title,
            tool: finding.tool,
        }
    }
}

/// A finding as lists and operations on single findings return it: the control room's members and
/// more.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
pub(crate) struct FindingResponse {
    #[serde(flatten)]
    details: FindingSummary,
    /// Time at which the acceptance of the finding's risk ends and the finding is reopened; null
    /// unless the risk is accepted.
    accepted_until: Option<Timestamp>,
    /// Number of audits that reported the finding.
    audit_count: i64,
    branch_ref: String,
    created_at: Timestamp,
    duplicate_of: Option<Uuid>,
    match_group_id: Option<Uuid>,
    open: bool,
    paths: Vec<String>,
    /// Whether the finding was reported by the latest runs that checked its files.
    present: bool,
    purl: Option<String>,
    recurring: bool,
    rule_family: String,
}

impl From<Stored<Finding>> for FindingResponse {
    fn from(stored: Stored<Finding>) -> Self {
        let finding = stored.value.clone();
        Self {
            accepted_until: finding.accepted_until,
            audit_count: finding.audit_count,
            branch_ref: finding.branch_ref,
            created_at: stored.created_at,
            duplicate_of: finding.duplicate_of,
            match_group_id: finding.match_group_id,
            open: finding.open,
            paths: finding.paths,
            present: finding.present,
            purl: finding.purl,
            recurring: finding.recurring,
            rule_family: finding.rule_family,
            details: stored.into(),
        }
    }
}

/// Query parameters that filter the list of findings.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    state: Option<FindingState>,
    severity: Option<Severity>,
    repository_id: Option<Uuid>,
    /// Only findings for which this audit is the latest that reported them.
    audit_id: Option<Uuid>,
    /// Only findings of the rule with this id.
    #[schemars(length(max = 300))]
    rule: Option<String>,
    /// Only findings of this tool.
    #[schemars(length(max = 200))]
    tool: Option<String>,
    owner_id: Option<Uuid>,
    match_group_id: Option<Uuid>,
    /// Only open findings (`true`) or only settled ones (`false`).
    open: Option<bool>,
    /// Only findings with this text in the title, the rule id or the package URL, ignoring case.
    #[schemars(length(max = 200))]
    q: Option<String>,
}

/// A page of findings, and limitations of the audits that reported them.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FindingPage {
    #[serde(flatten)]
    page: Page<FindingResponse>,
    /// Files that the latest audit of each branch skipped or could not read, and analyses whose
    /// findings no run of that audit checked.
    limitations: Vec<String>,
}

/// Text for the OpenAPI document: what `limitations` of the list of findings contains.
pub(crate) const DESCRIPTION: &str = "`limitations` names, for the latest audit of each branch of \
    the repository (of all repositories without `repository_id`), the files that were skipped or \
    refused, and the analyses whose findings were not updated because no run scanned their files. \
    An empty list means that all uploaded files were read.";

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging,
) -> Result<FindingPage> {
    let limitations = limits::shown(ctx, params.repository_id)?;
    let some = ctx
        .documents::<Finding>()
        .query()
        .equals_if("state", params.state.as_ref().map(name))
        .equals_if("risk_severity", params.severity.as_ref().map(name))
        .equals_if("repository_id", params.repository_id)
        .equals_if("audit_id", params.audit_id)
        .equals_if("rule_id", params.rule)
        .equals_if("tool", params.tool)
        .equals_if("owner_id", params.owner_id)
        .equals_if("match_group_id", params.match_group_id)
        .equals_if("open", params.open)
        .contains_if(&["title", "rule_id", "purl"], params.q.as_deref());
    let page = some.paging(paging).page()?.map(Into::into);
    Ok(FindingPage { page, limitations })
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<FindingResponse>> {
    let finding = ctx.documents::<Finding>().get(id)?;
    let version = finding.lifecycle_version.unsigned_abs();
    Ok(Versioned(finding.into(), version))
}
