//! Evaluates predicates after audits. A completed audit evaluates the current step of every active
//! program for its repository. Each program has its own job, so that a slow predicate delays only
//! its own program.

use std::collections::BTreeSet;

use area_sdk::prelude::*;
use area_sdk::text::name;
use area_sdk::{DocumentError, EventDelivery, JobOptions};
use serde_json::{Map, Value};

use crate::evaluations::{self, EvaluationKey};
use crate::events::{ProgramCompleted, ProgramTransitioned, StepVerified};
use crate::predicate::{self, PredicateResult};
use crate::program::StoredProgram;
use crate::state::{ProgramState, StepState};

/// Number of active programs that one step of the job reads.
const PROGRAMS_PER_STEP: u32 = 100;

/// Number of the evaluation job's attempt, from 1, that stores an error instead of evaluating the
/// predicate again.
const LAST_ATTEMPT: u32 = 3;

/// Maximum number of evidence record ids stored with a verified step.
const MOST_EVIDENCE: usize = 100;

/// An audit of the area `schedules`, with the members that this area reads.
#[derive(Serialize, Deserialize)]
struct Audit {
    repository_id: Uuid,
    #[serde(default)]
    completed_at: Option<Timestamp>,
    facts: Map<String, Value>,
    inputs: Vec<AuditInput>,
    records: Vec<Uuid>,
}

#[derive(Serialize, Deserialize)]
struct AuditInput {
    evidence_ids: Vec<Uuid>,
}

document!(Audit, "schedules.audits");

impl Audit {
    /// Returns the ids of the evidence records that the audit imported, at most [`MOST_EVIDENCE`].
    fn evidence(&self) -> Vec<String> {
        let carried = self.inputs.iter().flat_map(|input| &input.evidence_ids);
        let all: BTreeSet<&Uuid> = self.records.iter().chain(carried).collect();
        all.into_iter().take(MOST_EVIDENCE).map(Uuid::to_string).collect()
    }
}

/// Members of the event `audit.completed` that this area reads.
#[derive(Deserialize)]
struct AuditCompleted {
    audit_id: Uuid,
    repository_id: Uuid,
}

/// Job that finds the programs for which a completed audit counts, and enqueues their evaluation.
#[derive(Serialize, Deserialize)]
pub(crate) struct EnqueueEvaluationsJob {
    audit_id: Uuid,
    repository_id: Uuid,
    cursor: Option<String>,
}

job!(EnqueueEvaluationsJob, "remediation_search");

/// Job that evaluates one program for a completed audit.
#[derive(Serialize, Deserialize)]
pub(crate) struct EvaluateProgramJob {
    program_id: Uuid,
    audit_id: Uuid,
}

job!(EvaluateProgramJob, "remediation_evaluation");

pub(crate) fn audit_completed(ctx: &JobCtx, event: EventDelivery) -> JobResult<EventDelivery> {
    let AuditCompleted { audit_id, repository_id } = event.data()?;
    let later = JobOptions { dedupe_key: Some(audit_id.to_string()), ..JobOptions::default() };
    ctx.enqueue_with(&EnqueueEvaluationsJob { audit_id, repository_id, cursor: None }, later);
    Ok(Outcome::Done)
}

pub(crate) fn programs(
    ctx: &JobCtx,
    job: EnqueueEvaluationsJob,
) -> JobResult<EnqueueEvaluationsJob> {
    let active = ctx.documents::<StoredProgram>().query();
    let active = active.equals("state", name(&ProgramState::Active));
    let page = active.cursor(job.cursor).limit(PROGRAMS_PER_STEP).page()?;
    for program in page.items {
        if program.step_for(job.repository_id).is_some() {
            let later = JobOptions {
                resource: Some(program.uuid()),
                dedupe_key: Some(format!("{}/{}", program.id, job.audit_id)),
                ..JobOptions::default()
            };
            let evaluate =
                EvaluateProgramJob { program_id: program.uuid(), audit_id: job.audit_id };
            ctx.enqueue_with(&evaluate, later);
        }
    }
    Ok(match page.next_cursor {
        Some(cursor) => Outcome::Continue(EnqueueEvaluationsJob { cursor: Some(cursor), ..job }),
        None => Outcome::Done,
    })
}

/// Evaluates the program's current step for the audit. If that verifies the step, the job
/// continues with the next one: a run evaluates one predicate, so that the predicates together may
/// take longer than a run.
pub(crate) fn program(ctx: &JobCtx, job: EvaluateProgramJob) -> JobResult<EvaluateProgramJob> {
    let program = ctx.documents::<StoredProgram>().find(job.program_id)?;
    let audit = ctx.documents::<Audit>().find(job.audit_id)?;
    let (Some(mut program), Some(audit)) = (program, audit) else { return Ok(Outcome::Done) };
    let is_earlier = audit.completed_at.is_some_and(|at| Some(at) < program.activated_at);
    if is_earlier || program.state != ProgramState::Active {
        return Ok(Outcome::Done);
    }
    let Some(index) = program.step_for(audit.repository_id) else { return Ok(Outcome::Done) };
    let subject = EvaluationKey {
        program_id: job.program_id,
        order: index + 1,
        audit_id: job.audit_id,
        repository_id: audit.repository_id,
    };
    if evaluations::exists(ctx, subject)? {
        return Ok(Outcome::Done);
    }
    let verified = evaluate_step(ctx, &mut program, subject, &audit)?;
    ctx.documents().replace(&mut program)?;
    Ok(if verified { Outcome::Continue(job) } else { Outcome::Done })
}

/// Evaluates the predicate of a program's step for an audit. Returns whether the step is now
/// verified.
fn evaluate_step(
    ctx: &JobCtx,
    program: &mut StoredProgram,
    subject: EvaluationKey,
    audit: &Audit,
) -> Result<bool, DocumentError> {
    let index = subject.order - 1;
    let verdict = if ctx.attempt() >= LAST_ATTEMPT {
        PredicateResult::Error("The evaluation exceeds the available time or memory.".to_owned())
    } else {
        predicate::evaluate(&program.steps[index].plan.verification_predicate, &audit.facts)
    };
    let wanted = program.repositories_of(&program.steps[index]);
    let step = &mut program.steps[index];
    step.evaluation_status = evaluations::keep(ctx, subject, &verdict)?;
    if verdict != PredicateResult::Holds {
        step.satisfied_by.remove(&subject.repository_id);
        return Ok(false);
    }
    step.satisfied_by.insert(subject.repository_id, subject.audit_id);
    if !wanted.iter().all(|repository| step.satisfied_by.contains_key(repository)) {
        return Ok(false);
    }
    step.state = StepState::Verified;
    step.verified_at = Some(ctx.now());
    step.verification_audit_id = Some(subject.audit_id);
    step.evidence_ids = audit.evidence();
    go_on(ctx, program, subject);
    Ok(true)
}

/// Publishes that a step was verified. Makes the next step ready, or completes the program after
/// the last one.
fn go_on(ctx: &JobCtx, program: &mut StoredProgram, subject: EvaluationKey) {
    let EvaluationKey { program_id, order, audit_id, .. } = subject;
    let finding_id = program.finding_id;
    ctx.publish(StepVerified { program_id, finding_id, order, audit_id });
    if let Some(next) = program.steps.get_mut(order) {
        next.state = StepState::Ready;
        return;
    }
    let (from_state, to_state) = (program.state, ProgramState::Completed);
    program.set_state(to_state, ctx.now());
    ctx.publish(ProgramTransitioned {
        program_id,
        finding_id,
        from_state,
        to_state,
        actor_id: None,
        notes: None,
    });
    ctx.publish(ProgramCompleted { program_id, finding_id, audit_id });
}
