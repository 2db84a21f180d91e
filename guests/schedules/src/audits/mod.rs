//! Audits: starting one, and reading them. `run` gathers what one looks at,
//! `parts` collects what the other areas made of it.

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

/// The rules, for the operation's documentation.
pub(crate) const DESCRIPTION: &str = "\
The audit looks at the repository's ready uploads of its branch, or of no branch (where the audit \
names a commit: of that commit, or of none) that have not the purpose `evidence`, and at the \
evidence whose `subject_key` is the repository's id or name. Without `branch_ref` it is the repository's default branch.\n\n\
It is `queued`, then `running`, and `completed` when findings, dependencies and ownership have \
been brought up to date. A part that does not answer within five minutes is `missing`; its \
`errors` say where to look. `errors` of the audit are those of all parts, each with the name of \
its file. `warnings` of a part name the artifacts that it set aside or did not look at, and why. \
The audit is `failed` when the findings could not be imported, or when no part succeeded.";

/// An audit to be started.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewAudit {
    repository_id: Uuid,
    /// The repository's default branch, where nothing is said.
    #[schemars(length(min = 1, max = 255))]
    branch_ref: Option<String>,
    /// Only what belongs to this commit, or to none.
    #[schemars(regex(pattern = "^[0-9a-f]{7,64}$"))]
    commit_sha: Option<String>,
}

/// What makes an audit start.
pub(crate) struct Cause {
    pub(crate) trigger: Trigger,
    /// Who asked, or whose schedule it was.
    pub(crate) requested_by: Uuid,
    /// The schedule, and the moment it was due.
    pub(crate) due: Option<(Uuid, Timestamp)>,
}

/// Keeps a new audit and puts its work into the queue.
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

/// Which audits.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Of this repository.
    repository_id: Option<Uuid>,
    /// Started by this schedule.
    schedule_id: Option<Uuid>,
    /// In this state.
    state: Option<AuditState>,
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

pub(crate) fn list(ctx: &Ctx, Params(params): Params<ListParams>) -> Result<Page<AuditSummary>> {
    let wanted = ctx
        .documents::<StoredAudit>()
        .query()
        .equals_if("repository_id", params.repository_id)
        .equals_if("schedule_id", params.schedule_id)
        .equals_if("state", params.state.map(AuditState::as_str));
    let page = wanted.cursor(params.cursor).limit(params.limit).page()?;
    Ok(page.map(|audit| AuditSummary::of(&audit)))
}
