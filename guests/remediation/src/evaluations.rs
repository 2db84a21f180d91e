//! Evaluations: what an audit made of a step's predicate, kept as they come.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

use crate::predicate::Verdict;
use crate::program::{StoredProgram, default_limit};
use crate::state::EvaluationStatus;

/// An evaluation as it is kept.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredEvaluation {
    program_id: Uuid,
    audit_id: Uuid,
    repository_id: Uuid,
    order: usize,
    status: EvaluationStatus,
    detail: Option<String>,
}

impl Document for StoredEvaluation {
    const COLLECTION: &'static str = "evaluations";
}

/// An evaluation as it is shown.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Evaluation {
    id: Uuid,
    program_id: Uuid,
    audit_id: Uuid,
    repository_id: Uuid,
    /// Which step, from 1.
    order: usize,
    status: EvaluationStatus,
    /// Why the facts do not answer the predicate, where they do not.
    detail: Option<String>,
    evaluated_at: Timestamp,
}

/// What is evaluated by what.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) program_id: Uuid,
    /// From 1.
    pub(crate) order: usize,
    pub(crate) audit_id: Uuid,
    pub(crate) repository_id: Uuid,
}

/// Was this step evaluated by this audit already?
pub(crate) fn exists(scope: &Scope, subject: Subject) -> Result<bool, DocumentError> {
    let same = scope.documents::<StoredEvaluation>().query();
    let same = same.equals("program_id", subject.program_id).equals("audit_id", subject.audit_id);
    let order = i64::try_from(subject.order).unwrap_or(i64::MAX);
    Ok(same.equals("order", order).first()?.is_some())
}

/// Writes an evaluation down.
pub(crate) fn keep(
    scope: &Scope,
    subject: Subject,
    verdict: &Verdict,
) -> Result<EvaluationStatus, DocumentError> {
    let (status, detail) = match verdict {
        Verdict::Holds => (EvaluationStatus::Satisfied, None),
        Verdict::Fails => (EvaluationStatus::Unsatisfied, None),
        Verdict::Error(why) => (EvaluationStatus::Error, Some(why.clone())),
    };
    let Subject { program_id, order, audit_id, repository_id } = subject;
    let evaluation =
        StoredEvaluation { program_id, audit_id, repository_id, order, status, detail };
    scope.documents().create(scope.new_id(), &evaluation)?;
    Ok(status)
}

/// Which page.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    program_id: Uuid,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many a page has at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
}

pub(crate) fn list(ctx: &Ctx, Params(params): Params<ListParams>) -> Result<Page<Evaluation>> {
    ctx.documents::<StoredProgram>().get(params.program_id)?;
    let of_program = ctx.documents::<StoredEvaluation>().query();
    let of_program = of_program.equals("program_id", params.program_id);
    let page = of_program.cursor(params.cursor).limit(params.limit).page()?;
    Ok(page.map(|evaluation| Evaluation {
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
