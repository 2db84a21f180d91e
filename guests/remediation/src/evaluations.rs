//! Evaluations: results of a step's predicate for each audit, stored in order.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

use crate::predicate::PredicateResult;
use crate::program::StoredProgram;
use crate::state::EvaluationStatus;

/// A stored evaluation of a step's predicate.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredEvaluation {
    program_id: Uuid,
    audit_id: Uuid,
    repository_id: Uuid,
    order: usize,
    status: EvaluationStatus,
    detail: Option<String>,
}

document!(StoredEvaluation, "evaluations");

/// The evaluation of a step's predicate for an audit.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Evaluation")]
pub(crate) struct StepEvaluation {
    id: Uuid,
    program_id: Uuid,
    audit_id: Uuid,
    repository_id: Uuid,
    /// Number of the step in its program, from 1.
    order: usize,
    status: EvaluationStatus,
    /// Reason why the predicate could not be evaluated; null if it was evaluated.
    detail: Option<String>,
    evaluated_at: Timestamp,
}

/// Program, step, audit and repository that identify an evaluation.
#[derive(Clone, Copy)]
pub(crate) struct EvaluationKey {
    pub(crate) program_id: Uuid,
    /// Number of the step in its program, from 1.
    pub(crate) order: usize,
    pub(crate) audit_id: Uuid,
    pub(crate) repository_id: Uuid,
}

/// Whether this step of the program was already evaluated for this audit.
pub(crate) fn exists(scope: &Scope, subject: EvaluationKey) -> Result<bool, DocumentError> {
    let same = scope.documents::<StoredEvaluation>().query();
    let same = same.equals("program_id", subject.program_id).equals("audit_id", subject.audit_id);
    let order = i64::try_from(subject.order).unwrap_or(i64::MAX);
    Ok(same.equals("order", order).first()?.is_some())
}

/// Stores the evaluation of a remediation step for an audit. Returns the status of the evaluation.
pub(crate) fn keep(
    scope: &Scope,
    subject: EvaluationKey,
    verdict: &PredicateResult,
) -> Result<EvaluationStatus, DocumentError> {
    let (status, detail) = match verdict {
        PredicateResult::Holds => (EvaluationStatus::Satisfied, None),
        PredicateResult::Fails => (EvaluationStatus::Unsatisfied, None),
        PredicateResult::Error(why) => (EvaluationStatus::Error, Some(why.clone())),
    };
    let EvaluationKey { program_id, order, audit_id, repository_id } = subject;
    let evaluation =
        StoredEvaluation { program_id, audit_id, repository_id, order, status, detail };
    scope.documents().create(scope.new_id(), &evaluation)?;
    Ok(status)
}

pub(crate) fn list(
    ctx: &Ctx,
    Path(program_id): Path<Uuid>,
    paging: Paging,
) -> Result<Page<StepEvaluation>> {
    ctx.documents::<StoredProgram>().get(program_id)?;
    let of_program = ctx.documents::<StoredEvaluation>().query();
    let of_program = of_program.equals("program_id", program_id);
    let page = of_program.paging(paging).page()?;
    Ok(page.map(|evaluation| StepEvaluation {
        id: evaluation.uuid(),
        evaluated_at: evaluation.created_at,
        program_id: evaluation.program_id,
        audit_id: evaluation.audit_id,
        repository_id: evaluation.repository_id,
        order: evaluation.order,
        status: evaluation.status,
        detail: evaluation.value.detail,
    }))
}
