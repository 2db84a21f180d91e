//! Creates a workspace, once for each `Idempotency-Key`.

use serde_json::json;

use super::App;
use super::call::{CallRefusal, CommittedResponse};
use super::idempotency_guard::IdempotencyGuard;
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

/// Why a workspace was not created.
#[derive(Debug)]
pub enum CreateWorkspaceError {
    /// The name or slug is refused, the owner has too many workspaces, or the database is
    /// unavailable.
    People(PeopleError),
    /// The idempotency key is refused, or its stored response cannot be read.
    Refused(CallRefusal),
}

impl From<CallRefusal> for CreateWorkspaceError {
    fn from(refused: CallRefusal) -> Self {
        Self::Refused(refused)
    }
}

/// Creates a workspace, or returns the stored response for the idempotency key.
///
/// # Errors
/// See [`CreateWorkspaceError`]; no workspace was created.
pub async fn create(
    app: &App,
    new: NewWorkspace<'_>,
    render: impl Fn(Workspace) -> String,
) -> Result<CommittedResponse, CreateWorkspaceError> {
    // The scope has no workspace id, because the workspace does not exist yet.
    let operation = (WorkspaceId(uuid::Uuid::nil()), new.owner, "create_workspace");
    let request = json!({ "name": new.name, "slug": new.slug });
    let keyed = IdempotencyGuard::of_host(app, operation, new.idempotency_key, &request)?;
    if let Some(first) = earlier(app, keyed.as_ref()).await? {
        return Ok(first);
    }
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
    let owner = (Some(new.owner), Some(app.config.limits.max_workspaces_per_person));
    match app.identity.create_workspace_once(owner, new.name, new.slug, record).await {
        Ok(workspace) => Ok(answered(&workspace)),
        Err(error) => {
            earlier(app, keyed.as_ref()).await?.ok_or(CreateWorkspaceError::People(error))
        }
    }
}

/// Returns the stored response for the request's idempotency key, from this
/// node or another one; `None` if there is none.
pub(super) async fn earlier(
    app: &App,
    keyed: Option<&IdempotencyGuard>,
) -> Result<Option<CommittedResponse>, CallRefusal> {
    match keyed {
        Some(keyed) => keyed.stored(app).await?.transpose(),
        None => Ok(None),
    }
}
