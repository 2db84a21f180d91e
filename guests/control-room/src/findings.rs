//! Findings, as clients see them.

use area_sdk::prelude::*;

use crate::decimal::fixed;
use crate::finding::Finding;
use crate::identity;
use crate::import::limits;
use crate::observation::{Place, SourceFamily, SourceTool};
use crate::paging::default_limit;
use crate::severity::{Severity, SeveritySource};
use crate::state::State;

/// What has been made of a finding, seen from the architecture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Disposition {
    /// Nobody has looked at it since it was opened.
    Pending,
    /// It is real and open.
    Confirmed,
    /// It is gone.
    Resolved,
    /// It is not real, or another one.
    Dismissed,
    /// It is real and lived with.
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

/// A finding, in the contract's fields.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FindingDetails {
    /// How much of the repository's surroundings the catalog knows: 0.25 where
    /// no service is built from it, 0.60 with a service, 0.80 with a service's
    /// group.
    architecture_confidence: String,
    architecture_disposition: Disposition,
    /// The severity, one band worse where the repository is exposed.
    architecture_impact: Severity,
    /// The audit that saw it last.
    audit_id: Uuid,
    /// Did the service itself lead it into its state?
    auto_disposition: bool,
    /// The package, else the service, else the repository it is in.
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
    locations: Vec<Place>,
    owner_id: Option<Uuid>,
    repository_id: Uuid,
    risk_severity: Severity,
    /// Severity (the CVSS score, or 9.5, 8.0, 5.5, 2.0, 0.0 for the bands) times
    /// exposure (1.0; 0.2 more where a service is built from the repository, 0.3
    /// where one runs in production, 0.1 and 0.3 where one handles confidential
    /// and restricted data) times recurrence (1.0; 0.1 more for each further
    /// audit that saw it, up to 1.5).
    risk_total: String,
    rule_id: String,
    /// In the scanner's own words.
    scanner_severity: String,
    severity_source: SeveritySource,
    /// 7, 30, 90 and 120 days after the lifecycle began; null where it is
    /// settled.
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

/// A finding, with what lists and decisions need beyond the contract.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FindingView {
    #[serde(flatten)]
    details: FindingDetails,
    /// When an accepted risk is reopened.
    accepted_until: Option<Timestamp>,
    /// How many audits saw it.
    audit_count: i64,
    branch_ref: String,
    created_at: Timestamp,
    duplicate_of: Option<Uuid>,
    match_group_id: Option<Uuid>,
    open: bool,
    paths: Vec<String>,
    /// Is it there, as far as the latest runs say?
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

/// Which findings.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    state: Option<State>,
    severity: Option<Severity>,
    repository_id: Option<Uuid>,
    /// The audit that saw it last.
    audit_id: Option<Uuid>,
    /// A rule's id.
    #[schemars(length(max = 300))]
    rule: Option<String>,
    /// A tool's name.
    #[schemars(length(max = 200))]
    tool: Option<String>,
    owner_id: Option<Uuid>,
    match_group_id: Option<Uuid>,
    /// Is there something left to do?
    open: Option<bool>,
    /// Part of the title, the rule's id or the package URL, case ignored.
    #[schemars(length(max = 200))]
    q: Option<String>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many a page has at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
}

/// A page of findings, and what the latest audits did not look at.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FindingPage {
    #[serde(flatten)]
    page: Page<FindingView>,
    /// Files that the latest audit of each branch set aside or could not read,
    /// and analyses whose findings no run looked at.
    limitations: Vec<String>,
}

/// The meaning of `limitations`, for the operation's documentation.
pub(crate) const DESCRIPTION: &str = "\
`limitations` names, for the latest audit of each branch of the repository (of all repositories \
without `repository_id`), the files that were set aside or refused, and the analyses whose \
findings stay as they were because no run looked at their files. Empty, all that was sent was read.";

pub(crate) fn list(ctx: &Ctx, Params(params): Params<ListParams>) -> Result<FindingPage> {
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
    let page = some.cursor(params.cursor).limit(params.limit).page()?.map(Into::into);
    Ok(FindingPage { page, limitations })
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<FindingView>> {
    let finding = ctx.documents::<Finding>().get(id)?;
    let version = finding.lifecycle_version.unsigned_abs();
    Ok(Versioned(finding.into(), version))
}
