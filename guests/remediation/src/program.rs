//! Programs: stored form and responses.

use std::collections::BTreeMap;

use area_sdk::prelude::*;

use crate::state::{EvaluationStatus, ProgramState, StepState};

/// A step as planned by the author.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NewRemediationStep")]
pub(crate) struct StepPlan {
    /// Invariant that must hold after the step.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) invariant_id: String,
    #[schemars(length(min = 1, max = 100))]
    pub(crate) invariant_version: String,
    /// Owner of the step: a team, a service or a component.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) owner_scope: String,
    /// Repositories whose audits verify the step; by default the finding's.
    #[serde(default)]
    #[schemars(length(max = 50))]
    pub(crate) repository_ids: Vec<Uuid>,
    #[schemars(length(min = 1, max = 200))]
    pub(crate) title: String,
    /// CEL expression over an audit's facts. It is true when the step is done.
    #[schemars(length(min = 1, max = 1000))]
    pub(crate) verification_predicate: String,
}

/// A stored step.
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
    /// By repository, the latest audit for which the predicate was true.
    pub(crate) satisfied_by: BTreeMap<Uuid, Uuid>,
}

/// A stored program. Id, version and times are those of the document.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredProgram {
    pub(crate) title: String,
    pub(crate) rationale: String,
    pub(crate) finding_id: Uuid,
    /// Repository of the finding.
    pub(crate) repository_id: Uuid,
    pub(crate) root_cause_id: Option<Uuid>,
    pub(crate) target_state_ref: String,
    pub(crate) created_by: Uuid,
    pub(crate) state: ProgramState,
    /// The finding while the program is open, so that each finding has at most one open program.
    pub(crate) open_finding_id: Option<Uuid>,
    pub(crate) steps: Vec<StoredStep>,
    pub(crate) reviewed_by: Option<Uuid>,
    pub(crate) review_notes: Option<String>,
    pub(crate) activated_at: Option<Timestamp>,
    pub(crate) completed_at: Option<Timestamp>,
}

impl Document for StoredProgram {
    const COLLECTION: &'static str = "programs";
}

impl StoredProgram {
    /// Returns the index of the next step, or of the last one if all are done.
    pub(crate) fn current(&self) -> usize {
        let verified = |step: &&StoredStep| step.state == StepState::Verified;
        let done = self.steps.iter().take_while(verified).count();
        done.min(self.steps.len().saturating_sub(1))
    }

    /// Returns the step that audits of this repository verify next.
    pub(crate) fn step_for(&self, repository_id: Uuid) -> Option<usize> {
        let index = self.current();
        let step = self.steps.get(index).filter(|step| step.state == StepState::Ready)?;
        self.repositories_of(step).contains(&repository_id).then_some(index)
    }

    /// Returns the repositories whose audits verify a step.
    pub(crate) fn repositories_of(&self, step: &StoredStep) -> Vec<Uuid> {
        match step.plan.repository_ids.as_slice() {
            [] => vec![self.repository_id],
            named => named.to_vec(),
        }
    }

    /// Sets the state and the members that depend on it.
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

/// A step in responses.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RemediationStep {
    #[serde(flatten)]
    plan: StepPlan,
    /// Result of the predicate in the latest audit.
    evaluation_status: EvaluationStatus,
    /// Evidence imported by the verifying audit.
    evidence_ids: Vec<String>,
    /// Number of the step, from 1.
    order: usize,
    review_notes: Option<String>,
    state: StepState,
    verification_audit_id: Option<Uuid>,
    verified_at: Option<Timestamp>,
}

/// A program in responses.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RemediationProgram {
    activated_at: Option<Timestamp>,
    /// Time at which the last step was verified.
    completed_at: Option<Timestamp>,
    created_at: Timestamp,
    created_by: Uuid,
    /// Number of the next step, or of the last one if all are done.
    current_step: usize,
    finding_id: Uuid,
    id: Uuid,
    rationale: String,
    /// Notes of the latest transition with notes.
    review_notes: Option<String>,
    reviewed_by: Option<Uuid>,
    /// Group of matched findings to which the finding belonged when the program was created.
    root_cause_id: Option<Uuid>,
    state: ProgramState,
    steps: Vec<RemediationStep>,
    /// Name of the target state: `sha256:` and the digest of the JSON array of each step's
    /// invariant_id, invariant_version and verification_predicate. Programs with the same target
    /// have the same name.
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

/// Response with a program and its version.
pub(crate) type ProgramView = Result<Versioned<RemediationProgram>>;

pub(crate) fn shown(ctx: &Ctx, program: Stored<StoredProgram>) -> ProgramView {
    let version = program.version;
    Ok(Versioned(RemediationProgram::of(program, ctx.workspace_id()), version))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> ProgramView {
    shown(ctx, ctx.documents().get(id)?)
}

/// Filters of the list.
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
        .equals_if("state", params.state.map(ProgramState::as_str));
    let page = wanted.paging(paging).page()?;
    Ok(page.map(|program| RemediationProgram::of(program, ctx.workspace_id())))
}
