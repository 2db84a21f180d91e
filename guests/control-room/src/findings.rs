//! Findings in responses.

use area_sdk::prelude::*;

use crate::decimal::fixed;
use crate::finding::Finding;
use crate::identity;
use crate::import::limits;
use crate::observation::{FindingLocation, SourceFamily, SourceTool};
use crate::severity::{Severity, SeveritySource};
use crate::state::State;

/// Decision about a finding, from the architecture's view.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Disposition {
    /// No decision since it was opened.
    Pending,
    /// Confirmed and open.
    Confirmed,
    /// Fixed.
    Resolved,
    /// A false positive or a duplicate.
    Dismissed,
    /// The risk is accepted.
    Accepted,
}

impl Disposition {
    fn of(state: State) -> Self {
        match state {
            State::New | State::Reopened => Self::Pending,
            State::Triaged | State::InProgress | State::Remediated => Self::Confirmed,
            State::Verified => Self::Resolved,
            State::FalsePositive | State::Duplicate => Self::Dismissed,
            State::AcceptedRisk => Self::Accepted,
        }
    }
}

/// A finding, with the contract's member names.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RecurringFinding")]
pub(crate) struct FindingDetails {
    /// Share of the repository's architecture context that the catalog knows: 0.25 without a
    /// service, 0.60 with a service, 0.80 with a service's group.
    architecture_confidence: String,
    architecture_disposition: Disposition,
    /// The severity, one band higher if the repository is exposed.
    architecture_impact: Severity,
    /// The latest audit that showed it.
    audit_id: Uuid,
    /// Whether the service itself made the latest transition.
    auto_disposition: bool,
    /// The package, otherwise the service, otherwise the repository.
    component_identity: String,
    cvss_score: Option<String>,
    /// The revision that was scanned last.
    evidence_revision: Option<String>,
    fingerprint_algorithm_version: String,
    id: Uuid,
    identity_fingerprint: String,
    last_seen_at: Timestamp,
    lifecycle_started_at: Timestamp,
    lifecycle_state: State,
    lifecycle_updated_at: Timestamp,
    lifecycle_version: i64,
    locations: Vec<FindingLocation>,
    owner_id: Option<Uuid>,
    repository_id: Uuid,
    risk_severity: Severity,
    /// Severity (the CVSS score, or 9.5, 8.0, 5.5, 2.0, 0.0 for the bands) times exposure (1.0;
    /// plus 0.2 if a service is built from the repository, plus 0.3 if one runs in production, plus
    /// 0.1 or 0.3 if one handles confidential or restricted data) times recurrence (1.0; plus 0.1
    /// for each further audit that showed it, up to 1.5).
    risk_total: String,
    rule_id: String,
    /// Severity in the scanner's words.
    scanner_severity: String,
    severity_source: SeveritySource,
    /// 7, 30, 90 or 120 days after the beginning of the lifecycle; null if it is settled.
    sla_due_at: Option<Timestamp>,
    source_family: SourceFamily,
    source_tools: Vec<SourceTool>,
    state: State,
    title: String,
    tool: String,
}

impl From<Stored<Finding>> for FindingDetails {
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

/// A finding with the members that lists and decisions need in addition to the contract.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
pub(crate) struct FindingView {
    #[serde(flatten)]
    details: FindingDetails,
    /// Time at which an accepted risk is reopened.
    accepted_until: Option<Timestamp>,
    /// Number of audits that showed it.
    audit_count: i64,
    branch_ref: String,
    created_at: Timestamp,
    duplicate_of: Option<Uuid>,
    match_group_id: Option<Uuid>,
    open: bool,
    paths: Vec<String>,
    /// Whether the latest runs showed it.
    present: bool,
    purl: Option<String>,
    recurring: bool,
    rule_family: String,
}

impl From<Stored<Finding>> for FindingView {
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

/// Filters of the list.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    state: Option<State>,
    severity: Option<Severity>,
    repository_id: Option<Uuid>,
    /// Only findings that this audit showed last.
    audit_id: Option<Uuid>,
    /// Only findings of the rule with this id.
    #[schemars(length(max = 300))]
    rule: Option<String>,
    /// Only findings of this tool.
    #[schemars(length(max = 200))]
    tool: Option<String>,
    owner_id: Option<Uuid>,
    match_group_id: Option<Uuid>,
    /// Only open (`true`) or settled (`false`) findings.
    open: Option<bool>,
    /// Part of the title, the rule's id or the package URL, ignoring case.
    #[schemars(length(max = 200))]
    q: Option<String>,
}

/// A page of findings, and the limitations of the latest audits.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FindingPage {
    #[serde(flatten)]
    page: Page<FindingView>,
    /// Files that the latest audit of each branch skipped or could not read, and analyses whose
    /// findings no run checked.
    limitations: Vec<String>,
}

/// Description of `limitations` for OpenAPI.
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
    let mut some = ctx
        .documents::<Finding>()
        .query()
        .equals_if("state", params.state.map(State::as_str))
        .equals_if("risk_severity", params.severity.map(Severity::as_str))
        .equals_if("repository_id", params.repository_id)
        .equals_if("audit_id", params.audit_id)
        .equals_if("rule_id", params.rule)
        .equals_if("tool", params.tool)
        .equals_if("owner_id", params.owner_id)
        .equals_if("match_group_id", params.match_group_id)
        .equals_if("open", params.open);
    if let Some(part) = params.q {
        some = some.contains(&["title", "rule_id", "purl"], &part);
    }
    let page = some.paging(paging).page()?.map(Into::into);
    Ok(FindingPage { page, limitations })
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<FindingView>> {
    let finding = ctx.documents::<Finding>().get(id)?;
    let version = finding.lifecycle_version.unsigned_abs();
    Ok(Versioned(finding.into(), version))
}
