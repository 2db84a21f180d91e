//! Creates a workspace, once for each `Idempotency-Key`.

use serde_json::json;

use super::App;
use super::call::CommittedResponse;
use super::idempotency_guard::{HostOperationError, IdempotencyGuard, once};
use assurance_core::domain::id::{UserId, WorkspaceId};
use assurance_core::domain::people::Workspace;
use assurance_identity::PeopleError;

/// Data of a workspace to be created.
#[derive(Debug)]
pub struct NewWorkspace<'a> {
    /// First owner of the workspace.
    pub owner: UserId,
    /// Display name of the workspace.
    pub name: &'a str,
    /// URL name; `None` derives it from the name.
    pub slug: Option<&'a str>,
    /// Key from `Idempotency-Key`; `None` without one.
    pub idempotency_key: Option<String>,
}

/// Creates a workspace, or returns the stored response for the idempotency key.
///
/// # Errors
/// See [`HostOperationError`]; no workspace was created.
pub async fn create(
    app: &App,
    new: NewWorkspace<'_>,
    render: impl Fn(Workspace) -> String,
) -> Result<CommittedResponse, HostOperationError<PeopleError>> {
    let NewWorkspace { owner, name, slug, idempotency_key } = new;
    // The scope has no workspace id, because the workspace does not exist yet.
    let operation = (WorkspaceId(uuid::Uuid::nil()), owner, "create_workspace");
    let request = json!({ "name": name, "slug": slug });
    let keyed = IdempotencyGuard::of_host(app, operation, idempotency_key, &request)?;
    let answered = |workspace: &Workspace| CommittedResponse {
        status: 201,
        body: Some(render(workspace.clone())),
        version: None,
        replayed: false,
    };
    let record = |workspace: &Workspace| {
        let keyed = keyed.as_ref()?;
        Some(keyed.record(app, &answered(workspace), workspace.created_at))
    };
    let owner = (Some(owner), Some(app.config.limits.max_workspaces_per_person));
    let creating = async {
        let made = app.identity.create_workspace_once(owner, name, slug, record).await;
        made.map(|workspace| answered(&workspace))
    };
    once(app, keyed.as_ref(), creating).await
}
