//! Remediation programs: stored form and responses.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::text::name;

use crate::state::{EvaluationStatus, ProgramState, StepState};

/// A step of a remediation program, as planned by its author.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NewRemediationStep")]
pub(crate) struct StepPlan {
    /// Id of the invariant that must hold after the step.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) invariant_id: String,
    #[schemars(length(min = 1, max = 100))]
    pub(crate) invariant_version: String,
    /// Owner of the step: the name of a team, a service or a component.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) owner_scope: String,
    /// Ids of the repositories whose audits verify the step; by default the finding's repository.
    #[serde(default)]
    #[schemars(length(max = 50))]
    pub(crate) repository_ids: Vec<Uuid>,
    #[schemars(length(min = 1, max = 200))]
    pub(crate) title: String,
    /// CEL expression over the facts of an audit that is true when the step is done.
    #[schemars(length(min = 1, max = 1000))]
    pub(crate) verification_predicate: String,
}

/// A stored step of a remediation program.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredStep {
    #[serde(flatten)]
    pub(crate) plan: StepPlan,
    pub(crate) state: StepState,
    pub(crate) evaluation_status: EvaluationStatus,
    pub(crate) evidence_ids: Vec<String>,
    pub(crate) review_notes: Option<String>,
    pub(crate) verification_audit_id: Option<Uuid>,
    pub(crate) verified_at: Option<Timestamp>,
    /// For each repository of the step, the id of the latest audit for which the predicate was
    /// true.
    pub(crate) satisfied_by: BTreeMap<Uuid, Uuid>,
}

/// A stored remediation program. Id, version and times are those of the document.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredProgram {
    pub(crate) title: String,
    pub(crate) rationale: String,
    pub(crate) finding_id: Uuid,
    /// Id of the finding's repository.
    pub(crate) repository_id: Uuid,
    pub(crate) root_cause_id: Option<Uuid>,
    pub(crate) target_state_ref: String,
    pub(crate) created_by: Uuid,
    pub(crate) state: ProgramState,
    /// Id of the finding while the program is open. A unique index allows one open program for each
    /// finding.
    pub(crate) open_finding_id: Option<Uuid>,
    pub(crate) steps: Vec<StoredStep>,
    pub(crate) reviewed_by: Option<Uuid>,
    pub(crate) review_notes: Option<String>,
    pub(crate) activated_at: Option<Timestamp>,
    pub(crate) completed_at: Option<Timestamp>,
}

document!(StoredProgram, "programs");

impl StoredProgram {
    /// Returns the index of the program's first step that is not verified, or of the last step if
    /// all are.
    pub(crate) fn current(&self) -> usize {
        let verified = |step: &&StoredStep| step.state == StepState::Verified;
        let done = self.steps.iter().take_while(verified).count();
        done.min(self.steps.len().saturating_sub(1))
    }

    /// Returns the index of the program's current step, if it is ready and audits of this
    /// repository verify it.
    pub(crate) fn step_for(&self, repository_id: Uuid) -> Option<usize> {
        let index = self.current();
        let step = self.steps.get(index).filter(|step| step.state == StepState::Ready)?;
        self.repositories_of(step).contains(&repository_id).then_some(index)
    }

    /// Returns the ids of the repositories whose audits verify a step.
    pub(crate) fn repositories_of(&self, step: &StoredStep) -> Vec<Uuid> {
        match step.plan.repository_ids.as_slice() {
            [] => vec![self.repository_id],
            named => named.to_vec(),
        }
    }

    /// Sets the state of the program and the members that depend on it.
    pub(crate) fn set_state(&mut self, state: ProgramState, now: Timestamp) {
        self.state = state;
        self.open_finding_id = state.is_open().then_some(self.finding_id);
        match state {
            ProgramState::Active => self.activated_at = Some(now),
            ProgramState::Completed => self.completed_at = Some(now),
            _ => {}
        }
    }
}

/// A step of a remediation program.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RemediationStep {
    #[serde(flatten)]
    plan: StepPlan,
    /// Result of the step's predicate for the latest audit.
    evaluation_status: EvaluationStatus,
    /// Ids of evidence records that the verifying audit imported; empty before the step is
    /// verified.
    evidence_ids: Vec<String>,
    /// Number of the step in its program, from 1.
    order: usize,
    review_notes: Option<String>,
    state: StepState,
    verification_audit_id: Option<Uuid>,
    verified_at: Option<Timestamp>,
}

/// A remediation program: the steps that remove the cause of a finding.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RemediationProgram {
    activated_at: Option<Timestamp>,
    /// Time at which the last step was verified; null before.
    completed_at: Option<Timestamp>,
    created_at: Timestamp,
    created_by: Uuid,
    /// Number, from 1, of the first step that is not verified, or of the last step if all are.
    current_step: usize,
    finding_id: Uuid,
    id: Uuid,
    rationale: String,
    /// Notes of the latest change of state that had notes.
    review_notes: Option<String>,
    reviewed_by: Option<Uuid>,
    /// Id of the group of matched findings to which the finding belonged when the program was
    /// created.
    root_cause_id: Option<Uuid>,
    state: ProgramState,
    steps: Vec<RemediationStep>,
    /// Identifier of the target state: `sha256:` and the digest of the JSON array of each step's
    /// `invariant_id`, `invariant_version` and `verification_predicate`. Programs with the same
    /// target have the same identifier.
    target_state_ref: String,
    title: String,
    updated_at: Timestamp,
    version: u64,
    workspace_id: Uuid,
}

fn step_view((index, step): (usize, StoredStep)) -> RemediationStep {
    RemediationStep {
        plan: step.plan,
        evaluation_status: step.evaluation_status,
        evidence_ids: step.evidence_ids,
        order: index + 1,
        review_notes: step.review_notes,
        state: step.state,
        verification_audit_id: step.verification_audit_id,
        verified_at: step.verified_at,
    }
}

impl RemediationProgram {
    pub(crate) fn of(program: Stored<StoredProgram>, workspace_id: Uuid) -> Self {
        let (id, version) = (program.uuid(), program.version);
        let (created_at, updated_at) = (program.created_at, program.updated_at);
        let current_step = program.current() + 1;
        let program = program.value;
        Self {
            activated_at: program.activated_at,
            completed_at: program.completed_at,
            created_at,
            created_by: program.created_by,
            current_step,
            finding_id: program.finding_id,
            id,
            rationale: program.rationale,
            review_notes: program.review_notes,
            reviewed_by: program.reviewed_by,
            root_cause_id: program.root_cause_id,
            state: program.state,
            steps: program.steps.into_iter().enumerate().map(step_view).collect(),
            target_state_ref: program.target_state_ref,
            title: program.title,
            updated_at,
            version,
            workspace_id,
        }
    }
}

/// Result of a handler that responds with a program, and its version in `ETag`.
pub(crate) type ProgramHandlerResult = Result<Versioned<RemediationProgram>>;

pub(crate) fn shown(ctx: &Ctx, program: Stored<StoredProgram>) -> ProgramHandlerResult {
    Ok(program.versioned(|program| RemediationProgram::of(program, ctx.workspace_id())))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> ProgramHandlerResult {
    shown(ctx, ctx.documents().get(id)?)
}

/// Query parameters that filter the list of programs.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only programs for this finding.
    finding_id: Option<Uuid>,
    /// Only programs for findings of this repository.
    repository_id: Option<Uuid>,
    /// Only programs in this state.
    state: Option<ProgramState>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging,
) -> Result<Page<RemediationProgram>> {
    let wanted = ctx
        .documents::<StoredProgram>()
        .query()
        .equals_if("finding_id", params.finding_id)
        .equals_if("repository_id", params.repository_id)
        .equals_if("state", params.state.as_ref().map(name));
    let page = wanted.paging(paging).page()?;
    Ok(page.map(|program| RemediationProgram::of(program, ctx.workspace_id())))
}
