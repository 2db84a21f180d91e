//! A program as it is kept, and as the contract shows it.

use std::collections::BTreeMap;

use area_sdk::prelude::*;

use crate::state::{EvaluationStatus, ProgramState, StepState};

/// What a step is to bring about, as its author says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StepPlan {
    /// The invariant that is to hold once the step is done.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) invariant_id: String,
    #[schemars(length(min = 1, max = 100))]
    pub(crate) invariant_version: String,
    /// Who is to do it: a team, a service, a component.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) owner_scope: String,
    /// The repositories whose audits verify it; the finding's where none is
    /// named.
    #[serde(default)]
    #[schemars(length(max = 50))]
    pub(crate) repository_ids: Vec<Uuid>,
    #[schemars(length(min = 1, max = 200))]
    pub(crate) title: String,
    /// A CEL expression over an audit's facts that is true once it is done.
    #[schemars(length(min = 1, max = 1000))]
    pub(crate) verification_predicate: String,
}

/// A step as it is kept.
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
    /// By repository, the latest audit, where that found the predicate to hold.
    pub(crate) satisfied_by: BTreeMap<Uuid, Uuid>,
}

/// A program as it is kept; id, version and times are the document's.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredProgram {
    pub(crate) title: String,
    pub(crate) rationale: String,
    pub(crate) finding_id: Uuid,
    /// The finding's.
    pub(crate) repository_id: Uuid,
    pub(crate) root_cause_id: Option<Uuid>,
    pub(crate) target_state_ref: String,
    pub(crate) created_by: Uuid,
    pub(crate) state: ProgramState,
    /// The finding while the program is open: no other may be.
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
    /// The index of the step to be done, the last one when all are.
    pub(crate) fn current(&self) -> usize {
        let verified = |step: &&StoredStep| step.state == StepState::Verified;
        let done = self.steps.iter().take_while(verified).count();
        done.min(self.steps.len().saturating_sub(1))
    }

    /// The step that audits of this repository verify next.
    pub(crate) fn step_for(&self, repository_id: Uuid) -> Option<usize> {
        let index = self.current();
        let step = self.steps.get(index).filter(|step| step.state == StepState::Ready)?;
        self.repositories_of(step).contains(&repository_id).then_some(index)
    }

    /// The repositories whose audits verify a step.
    pub(crate) fn repositories_of(&self, step: &StoredStep) -> Vec<Uuid> {
        match step.plan.repository_ids.as_slice() {
            [] => vec![self.repository_id],
            named => named.to_vec(),
        }
    }

    /// Sets the state, and what follows from it.
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

/// A step as the contract shows it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RemediationStep {
    #[serde(flatten)]
    plan: StepPlan,
    /// What the latest audit made of the predicate.
    evaluation_status: EvaluationStatus,
    /// The evidence that the verifying audit took in.
    evidence_ids: Vec<String>,
    /// From 1.
    order: usize,
    review_notes: Option<String>,
    state: StepState,
    verification_audit_id: Option<Uuid>,
    verified_at: Option<Timestamp>,
}

/// A program as the contract shows it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RemediationProgram {
    activated_at: Option<Timestamp>,
    /// When the last step was verified.
    completed_at: Option<Timestamp>,
    created_at: Timestamp,
    created_by: Uuid,
    /// The order of the step to be done, of the last one when all are.
    current_step: usize,
    finding_id: Uuid,
    id: Uuid,
    rationale: String,
    /// The notes of the latest transition that had some.
    review_notes: Option<String>,
    reviewed_by: Option<Uuid>,
    /// The group of matched findings that the finding belonged to when the
    /// program was made.
    root_cause_id: Option<Uuid>,
    state: ProgramState,
    steps: Vec<RemediationStep>,
    /// Names what the steps are to bring about: `sha256:` and the digest of
    /// the JSON array of each step's invariant_id, invariant_version and
    /// verification_predicate. Programs with the same target have the same.
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

/// A program with its version.
pub(crate) type Shown = Result<Versioned<RemediationProgram>>;

pub(crate) fn shown(ctx: &Ctx, program: Stored<StoredProgram>) -> Shown {
    let version = program.version;
    Ok(Versioned(RemediationProgram::of(program, ctx.workspace_id()), version))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Shown {
    shown(ctx, ctx.documents().get(id)?)
}

/// Which programs.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// For this finding.
    finding_id: Option<Uuid>,
    /// For findings of this repository.
    repository_id: Option<Uuid>,
    /// In this state.
    state: Option<ProgramState>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many a page has at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
}

pub(crate) fn default_limit() -> u32 {
    50
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
) -> Result<Page<RemediationProgram>> {
    let wanted = ctx
        .documents::<StoredProgram>()
        .query()
        .equals_if("finding_id", params.finding_id)
        .equals_if("repository_id", params.repository_id)
        .equals_if("state", params.state.map(ProgramState::as_str));
    let page = wanted.cursor(params.cursor).limit(params.limit).page()?;
    Ok(page.map(|program| RemediationProgram::of(program, ctx.workspace_id())))
}
