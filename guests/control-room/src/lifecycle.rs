//! Transitions of findings that users request, and the automatic end of accepted risks.

use std::collections::BTreeSet;

use area_sdk::prelude::*;
use area_sdk::text::name;
use area_sdk::{DocumentError, EventDelivery, JobOptions, Violation};
use area_shared::evidence::EvidenceRecord;
use area_shared::queue::JobCancelled;
use serde_json::{Map, json};

use crate::finding::Finding;
use crate::import::set_idle;
use crate::severity::Severity;
use crate::state::{Actor, FindingState};
use crate::transition::{PendingTransition, StoredTransition, TransitionRecord, pass};

/// Text for the OpenAPI document: which transitions of a finding are allowed.
pub(crate) const DESCRIPTION: &str = "From `new` and `reopened` a user can change a finding to \
    `triaged`, `in_progress`, `remediated`, `false_positive`, `accepted_risk` or `duplicate`; \
    from `triaged` and `in_progress` to each other or to the last four of these; from \
    `remediated` back to `in_progress` or to `reopened`; from `verified`, `false_positive`, \
    `accepted_risk` and `duplicate` to `reopened` only. Any other transition returns 409 \
    `transition_not_allowed`.\n\n\
    Only an audit verifies: an open finding becomes `verified` when the same tool and category \
    ran successfully over the same branch, covered its files and did not report it; it becomes \
    `reopened` when a newer file reports it again. A run without a category \
    (`automationDetails.id`) belongs to the artifact stream of its upload's filename (with its \
    path), or of the evidence record's provider and `source_ref`. It covers the findings of its \
    own stream, and files that its `artifacts` name or in which it reports something, of the \
    rules that it lists, unless it ran over them without the finding while another stream showed \
    it. `accepted_risk` requires a reason and a date, at which the finding is reopened \
    automatically. A finding that is reopened though no scan reports it any more is verified by \
    the next audit with a run that covers it; if a user reopened it, only by a newer file. A \
    `duplicate` that scans still report is reopened when the other finding is verified. The date \
    is at most 365 days ahead unless the operator has set `max_risk_acceptance_days` for this \
    area; a critical finding requires the role admin. `duplicate` may name the other finding in \
    `duplicate_of`.\n\n\
    A finding that scans suppress (`suppressions`, all of them accepted) becomes \
    `false_positive` if each analysis that reports it suppresses it, on every branch and in every \
    category; it is reopened when one no longer does. Of the streams of one tool on a branch, \
    the one with the newest file decides. After a user's decision, only a newer file suppresses \
    the finding.\n\n\
    `If-Match` requires the finding's lifecycle version. Transitions are never changed; each \
    supersedes the one before.";

/// Name of the operator's setting with the maximum number of days for which the risk of a finding
/// can be accepted.
const LONGEST_ACCEPTANCE: &str = "max_risk_acceptance_days";
const DEFAULT_ACCEPTANCE_DAYS: i64 = 365;
const DAY_SECONDS: i64 = 86_400;

/// Number of attempts of the job that reopens a finding when the acceptance of its risk ends. By
/// default they take almost four days, in which a version that cannot run the job can be replaced.
pub(crate) const EXPIRY_ATTEMPTS: u32 = 100;

/// Number of attempts in which the job tries to end the acceptance of a risk. Later attempts only
/// put the job off for a day.
const MOST_ATTEMPTS: u32 = 7;

/// Published when a user changed the state of a finding, or the acceptance of its risk ended.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FindingTransitioned {
    finding_id: Uuid,
    transition_id: Uuid,
    from_state: Option<FindingState>,
    to_state: FindingState,
    actor_id: Option<Uuid>,
    version: i64,
}

event!(FindingTransitioned, "finding.transitioned");

impl FindingTransitioned {
    pub(crate) fn of(transition: &TransitionRecord) -> Self {
        Self {
            finding_id: transition.finding_id,
            transition_id: transition.id,
            from_state: transition.from_state,
            to_state: transition.to_state,
            actor_id: transition.actor_id,
            version: transition.version,
        }
    }
}

/// A request to change the state of a finding.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "NewFindingTransition")]
pub(crate) struct TransitionRequest {
    to_state: FindingState,
    /// Reason of the transition; required for `accepted_risk`.
    #[schemars(length(min = 1, max = 4000))]
    reason: Option<String>,
    /// Time at which the acceptance of the risk ends and the finding is reopened; required for
    /// `accepted_risk`, and only allowed for it.
    expires_at: Option<Timestamp>,
    /// Ids of evidence records of this workspace that support the transition.
    #[serde(default)]
    #[schemars(length(max = 100))]
    evidence_ids: Vec<Uuid>,
    /// Id of the finding that this one duplicates and that stays open; only for `duplicate`.
    duplicate_of: Option<Uuid>,
}

impl TransitionRequest {
    /// Returns the violations in the request that do not depend on the finding.
    fn violations(&self, now: Timestamp) -> Vec<Violation> {
        let mut violations = Vec::new();
        let mut wrong = |pointer: &str, message: &str| {
            violations.push(Violation { pointer: pointer.to_owned(), message: message.to_owned() });
        };
        match self.to_state {
            FindingState::New => {
                wrong("/to_state", "is only the initial state; reopen the finding instead");
            }
            FindingState::Verified => {
                wrong(
                    "/to_state",
                    "can only be set by an audit; mark the finding remediated and start an audit",
                );
            }
            _ => {}
        }
        let accepts = self.to_state == FindingState::AcceptedRisk;
        if accepts && self.reason.as_deref().is_none_or(|reason| reason.trim().is_empty()) {
            wrong("/reason", "is required: state why the risk is accepted");
        }
        match self.expires_at {
            None if accepts => {
                wrong("/expires_at", "is required: the date until which it is accepted");
            }
            Some(at) if accepts && at <= now => wrong("/expires_at", "must be in the future"),
            Some(_) if !accepts => wrong("/expires_at", "is only for accepted_risk"),
            _ => {}
        }
        if self.duplicate_of.is_some() && self.to_state != FindingState::Duplicate {
            wrong("/duplicate_of", "is only for duplicate");
        }
        violations
    }

    fn change(&self, actor: Uuid) -> PendingTransition {
        let mut metadata = Map::new();
        if let Some(original) = self.duplicate_of {
            metadata.insert("duplicate_of".to_owned(), json!(original));
        }
        PendingTransition {
            to: self.to_state,
            actor_id: Some(actor),
            reason: self.reason.clone(),
            evidence_ids: self.evidence_ids.clone(),
            expires_at: self.expires_at,
            metadata,
            audit_id: None,
        }
    }
}

pub(crate) fn create(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
    Body(wanted): Body<TransitionRequest>,
) -> Result<Created<Versioned<TransitionRecord>>> {
    let mut finding = ctx.documents::<Finding>().get(id)?;
    ctx.check_if_match(finding.lifecycle_version.unsigned_abs())?;
    let violations = wanted.violations(ctx.now());
    if let Some(first) = violations.first() {
        let mut problem = Problem::validation("", first.message.clone());
        problem.violations = violations;
        return Err(problem);
    }
    check_allowed(finding.state, wanted.to_state)?;
    check_acceptance(ctx, &finding, &wanted)?;
    check_original(ctx, id, wanted.duplicate_of)?;
    check_evidence(ctx, &wanted.evidence_ids)?;
    let transition = pass(ctx, id, &mut finding, wanted.change(ctx.user()));
    if wanted.to_state == FindingState::Reopened {
        set_idle(ctx, &finding.analysis_id, false)?;
    }
    finding.duplicate_of = wanted.duplicate_of;
    ctx.documents().create(transition.record.id, &transition)?;
    ctx.documents().replace(&mut finding)?;
    expire_later(ctx, &transition.record);
    ctx.publish(FindingTransitioned::of(&transition.record));
    let version = transition.record.version.unsigned_abs();
    Ok(Created(Versioned(transition.record, version)))
}

/// Refuses to accept a risk for too long, or, unless the user is an admin, the risk of a critical
/// finding.
fn check_acceptance(ctx: &Ctx, finding: &Finding, wanted: &TransitionRequest) -> Result<()> {
    if wanted.to_state != FindingState::AcceptedRisk {
        return Ok(());
    }
    if finding.rating.risk_severity == Severity::Critical && ctx.role() < Role::Admin {
        let detail = "Accepting the risk of a critical finding requires the role admin.";
        return Err(Problem::permission_denied(detail)
            .hint("Ask an admin or owner of the workspace to accept it."));
    }
    let days = longest_acceptance_days(ctx);
    if wanted.expires_at.is_some_and(|at| at > ctx.now().plus_seconds(days * DAY_SECONDS)) {
        let message = format!("a risk can be accepted for at most {days} days");
        return Err(Problem::validation("/expires_at", message)
            .hint("Send an earlier date; the risk can be accepted again after it is reopened."));
    }
    Ok(())
}

/// Returns the maximum number of days for which the risk of a finding can be accepted: the
/// operator's setting if it is from 1 to 36,500, otherwise 365.
fn longest_acceptance_days(ctx: &Ctx) -> i64 {
    let set = ctx.setting(LONGEST_ACCEPTANCE).and_then(|text| text.trim().parse().ok());
    set.filter(|days| (1..=36_500).contains(days)).unwrap_or(DEFAULT_ACCEPTANCE_DAYS)
}

fn check_allowed(from: FindingState, to: FindingState) -> Result<()> {
    let next = from.next(Actor::Person);
    if next.contains(&to) {
        return Ok(());
    }
    let names: Vec<String> = next.iter().map(name).collect();
    let detail = format!("A finding that is {} cannot become {}.", name(&from), name(&to));
    let hint = format!("It can become {}.", names.join(", "));
    Err(Problem::conflict("transition_not_allowed", detail).hint(hint))
}

fn check_original(ctx: &Ctx, id: Uuid, original: Option<Uuid>) -> Result<()> {
    let Some(original) = original else { return Ok(()) };
    let wrong = |message: &str| Err(Problem::validation("/duplicate_of", message));
    if original == id {
        return wrong("a finding cannot be a duplicate of itself");
    }
    match ctx.documents::<Finding>().find(original)? {
        None => wrong("the workspace has no such finding"),
        Some(other) if other.state == FindingState::Duplicate => wrong("is a duplicate itself"),
        Some(_) => Ok(()),
    }
}

fn check_evidence(ctx: &Ctx, ids: &[Uuid]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let records = ctx.documents::<EvidenceRecord>().get_many(ids)?;
    let known: BTreeSet<Uuid> = records.iter().map(Stored::uuid).collect();
    match ids.iter().position(|id| !known.contains(id)) {
        None => Ok(()),
        Some(unknown) => Err(Problem::validation(
            format!("/evidence_ids/{unknown}"),
            "is not evidence of this workspace",
        )
        .hint("Name evidence from an accepted envelope.")),
    }
}

pub(crate) fn list(
    ctx: &Ctx,
    Path(finding_id): Path<Uuid>,
    paging: Paging,
) -> Result<Page<TransitionRecord>> {
    ctx.documents::<Finding>().get(finding_id)?;
    let all = ctx.documents::<StoredTransition>().query();
    let own = all.equals("finding_id", finding_id).descending("version");
    let page = own.paging(paging).page()?;
    Ok(page.map(|transition| transition.value.record))
}

/// Job that reopens a finding when the acceptance of its risk ends.
#[derive(Serialize, Deserialize)]
pub(crate) struct AcceptanceExpiryJob {
    finding_id: Uuid,
    /// Lifecycle version of the finding after the acceptance. If the finding has another one, the
    /// job does nothing.
    version: i64,
}

job!(AcceptanceExpiryJob, "expire_acceptance");

impl AcceptanceExpiryJob {
    fn enqueue(&self, scope: &Scope, at: Timestamp) {
        let resource = Some(self.finding_id);
        scope.enqueue_with(self, JobOptions { at: Some(at), resource, dedupe_key: None });
    }
}

fn expire_later(ctx: &Ctx, accepted: &TransitionRecord) {
    if let Some(at) = accepted.expires_at {
        let job =
            AcceptanceExpiryJob { finding_id: accepted.finding_id, version: accepted.version };
        job.enqueue(ctx, at);
    }
}

/// Handles the cancellation of a job: if it was to end the acceptance of a risk, enqueues it again,
/// because no risk is accepted without an end.
pub(crate) fn job_cancelled(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let cancelled: JobCancelled = event.data()?;
    let Some(finding_id) = cancelled.resource_of::<AcceptanceExpiryJob>("control_room") else {
        return Ok(Outcome::Done);
    };
    let finding = ctx.documents::<Finding>().find(finding_id)?;
    let accepted = finding.filter(|finding| finding.state == FindingState::AcceptedRisk);
    if let Some(finding) = accepted
        && let Some(at) = finding.accepted_until
    {
        AcceptanceExpiryJob { finding_id, version: finding.lifecycle_version }.enqueue(ctx, at);
    }
    Ok(Outcome::Done)
}

pub(crate) fn expire(ctx: &JobCtx, job: AcceptanceExpiryJob) -> JobResult<AcceptanceExpiryJob> {
    if ctx.attempt() > MOST_ATTEMPTS {
        // If the job died, the risk would be accepted without an end.
        job.enqueue(ctx, ctx.now().plus_seconds(DAY_SECONDS));
        return Ok(Outcome::Done);
    }
    let Some(mut finding) = ctx.documents::<Finding>().find(job.finding_id)? else {
        return Ok(Outcome::Done);
    };
    // A user may have reopened the finding meanwhile, and perhaps accepted the risk again.
    if finding.state == FindingState::AcceptedRisk && finding.lifecycle_version == job.version {
        reopen(ctx, &mut finding)?;
    }
    Ok(Outcome::Done)
}

fn reopen(ctx: &JobCtx, finding: &mut Stored<Finding>) -> Result<(), DocumentError> {
    let change = PendingTransition {
        to: FindingState::Reopened,
        reason: Some("The period for which the risk was accepted has ended.".to_owned()),
        ..PendingTransition::default()
    };
    let transition = pass(ctx, finding.uuid(), finding, change);
    ctx.documents().create(transition.record.id, &transition)?;
    ctx.documents().replace(finding)?;
    set_idle(ctx, &finding.analysis_id, false)?;
    ctx.publish(FindingTransitioned::of(&transition.record));
    Ok(())
}
