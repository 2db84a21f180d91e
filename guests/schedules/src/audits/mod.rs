//! Operations that start and list audits. `run` collects the inputs; `parts` receives the results
//! of other areas.

pub(crate) mod document;
pub(crate) mod events;
mod inputs;
pub(crate) mod parts;
pub(crate) mod run;

use area_sdk::prelude::*;
use area_sdk::text::name;
use area_sdk::{DocumentError, JobOptions, Scope};

use crate::repositories;
use document::{Audit, AuditListItem, AuditState, StoredAudit, Trigger};
use run::StartAuditJob;

/// Text for the OpenAPI document: which inputs an audit imports.
pub(crate) const DESCRIPTION: &str = "The audit imports the repository's ready uploads of its \
    branch, or of no branch (where the audit names a commit: of that commit, or of none) without \
    the purpose `evidence`, and the evidence whose `subject_key` is the repository's id or name. \
    Without `branch_ref` it is the repository's default branch.\n\n\
    It is `queued`, then `running`, and `completed` when findings, dependencies and ownership are \
    imported. A part without a result after five minutes is `missing`; its `errors` say where to \
    find the cause. `errors` of the audit are those of all parts, each with the name of its file. \
    `warnings` of a part name the artifacts that it skipped, and why. The audit is `failed` when \
    the findings could not be imported, when no part succeeded, or when it has not started after \
    24 hours.";

/// Maximum size of a `branch_ref`, in bytes; it is in indexes of areas that import audits.
const MAX_BRANCH_BYTES: usize = 255;

/// A request to start an audit of a repository.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewAudit {
    repository_id: Uuid,
    /// Branch to audit, at most 255 bytes; by default the repository's default branch.
    #[schemars(length(min = 1, max = 255))]
    branch_ref: Option<String>,
    /// Commit to audit. Only inputs of this commit, or without a commit, are imported.
    #[schemars(regex(pattern = "^[0-9a-f]{7,64}$"))]
    commit_sha: Option<String>,
}

/// Why an audit starts, and which user is responsible.
pub(crate) struct AuditStartCause {
    pub(crate) trigger: Trigger,
    /// User who requested the audit or created its schedule.
    pub(crate) requested_by: Uuid,
    /// Id of the schedule and its due time; `None` for a manual audit.
    pub(crate) due: Option<(Uuid, Timestamp)>,
}

/// Stores a new audit, and enqueues the job that runs it and the job that ends it if it does not
/// start in time.
pub(crate) fn begin(
    scope: &Scope,
    target: document::RepositoryRevision,
    cause: &AuditStartCause,
) -> Result<Stored<StoredAudit>, DocumentError> {
    let id = scope.new_id();
    let audit = scope.documents().create_stored(id, StoredAudit::new(target, cause))?;
    scope.enqueue_with(
        &StartAuditJob { audit_id: id },
        JobOptions {
            resource: Some(id),
            dedupe_key: Some(id.to_string()),
            ..JobOptions::default()
        },
    );
    run::plan_end(scope, &audit);
    Ok(audit)
}

fn check_branch(branch_ref: Option<&String>) -> Result<()> {
    match branch_ref.map(String::len) {
        Some(bytes) if bytes > MAX_BRANCH_BYTES => {
            let message = format!("has {bytes} bytes; at most {MAX_BRANCH_BYTES} are allowed");
            Err(Problem::validation("/branch_ref", message))
        }
        _ => Ok(()),
    }
}

pub(crate) fn start(ctx: &Ctx, Body(new): Body<NewAudit>) -> Result<Created<Versioned<Audit>>> {
    check_branch(new.branch_ref.as_ref())?;
    let repository = repositories::auditable(ctx, new.repository_id)?;
    let target = document::RepositoryRevision {
        repository_id: new.repository_id,
        branch_ref: new.branch_ref.or(repository.value.default_branch),
        commit_sha: new.commit_sha,
    };
    let cause = AuditStartCause { trigger: Trigger::Manual, requested_by: ctx.user(), due: None };
    let audit = begin(ctx, target, &cause)?;
    Ok(Created(audit.versioned(|audit| Audit::new(audit, Vec::new()))))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<Audit>> {
    let audit = ctx.documents::<StoredAudit>().get(id)?;
    let jobs = match audit.completed_at {
        None => ctx.progress_of(audit.uuid()),
        Some(_) => Vec::new(),
    };
    Ok(audit.versioned(|audit| Audit::new(audit, jobs)))
}

/// Query parameters that filter the list of audits.
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
) -> Result<Page<AuditListItem>> {
    let wanted = ctx
        .documents::<StoredAudit>()
        .query()
        .equals_if("repository_id", params.repository_id)
        .equals_if("schedule_id", params.schedule_id)
        .equals_if("state", params.state.as_ref().map(name));
    let page = wanted.paging(paging).page()?;
    Ok(page.map(|audit| AuditListItem::of(&audit)))
}
