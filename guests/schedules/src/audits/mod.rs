//! Audits: start and list them. `run` collects the inputs, and `parts` receives the results of
//! other areas.

pub(crate) mod document;
pub(crate) mod events;
mod inputs;
pub(crate) mod parts;
pub(crate) mod run;

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Later, Scope};

use crate::repositories;
use document::{Audit, AuditState, AuditSummary, StoredAudit, Trigger};
use run::RunAudit;

/// Description of the rules for OpenAPI.
pub(crate) const DESCRIPTION: &str = "The audit imports the repository's ready uploads of its \
    branch, or of no branch (where the audit names a commit: of that commit, or of none) without \
    the purpose `evidence`, and the evidence whose `subject_key` is the repository's id or name. \
    Without `branch_ref` it is the repository's default branch.\n\n\
    It is `queued`, then `running`, and `completed` when findings, dependencies and ownership are \
    imported. A part without a result after five minutes is `missing`; its `errors` say where to \
    find the cause. `errors` of the audit are those of all parts, each with the name of its file. \
    `warnings` of a part name the artifacts that it skipped, and why. The audit is `failed` when \
    the findings could not be imported, or when no part succeeded.";

/// A request to start an audit.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewAudit {
    repository_id: Uuid,
    /// Branch; by default the repository's.
    #[schemars(length(min = 1, max = 255))]
    branch_ref: Option<String>,
    /// Only inputs of this commit, or of none.
    #[schemars(regex(pattern = "^[0-9a-f]{7,64}$"))]
    commit_sha: Option<String>,
}

/// What starts an audit.
pub(crate) struct Cause {
    pub(crate) trigger: Trigger,
    /// User who requested it or created the schedule.
    pub(crate) requested_by: Uuid,
    /// The schedule and its due time.
    pub(crate) due: Option<(Uuid, Timestamp)>,
}

/// Stores a new audit and enqueues its job.
pub(crate) fn begin(
    scope: &Scope,
    target: document::Target,
    cause: &Cause,
) -> Result<Stored<StoredAudit>, DocumentError> {
    let id = scope.new_id();
    scope.documents().create(id, &StoredAudit::new(target, cause))?;
    scope.enqueue_with(
        &RunAudit { audit_id: id },
        Later { resource: Some(id), dedupe_key: Some(id.to_string()), ..Later::default() },
    );
    scope.documents().get(id)
}

pub(crate) fn start(ctx: &Ctx, Body(new): Body<NewAudit>) -> Result<Created<Versioned<Audit>>> {
    let repository = repositories::auditable(ctx, new.repository_id)?;
    let target = document::Target {
        repository_id: new.repository_id,
        branch_ref: new.branch_ref.or(repository.value.default_branch),
        commit_sha: new.commit_sha,
    };
    let cause = Cause { trigger: Trigger::Manual, requested_by: ctx.user(), due: None };
    let audit = begin(ctx, target, &cause)?;
    let version = audit.version;
    Ok(Created(Versioned(audit.into(), version)))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<Audit>> {
    let audit = ctx.documents::<StoredAudit>().get(id)?;
    let version = audit.version;
    Ok(Versioned(audit.into(), version))
}

/// Filters of the list.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only audits of this repository.
    repository_id: Option<Uuid>,
    /// Only audits started by this schedule.
    schedule_id: Option<Uuid>,
    /// Only audits in this state.
    state: Option<AuditState>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging,
) -> Result<Page<AuditSummary>> {
    let wanted = ctx
        .documents::<StoredAudit>()
        .query()
        .equals_if("repository_id", params.repository_id)
        .equals_if("schedule_id", params.schedule_id)
        .equals_if("state", params.state.map(AuditState::as_str));
    let page = wanted.paging(paging).page()?;
    Ok(page.map(|audit| AuditSummary::of(&audit)))
}
