//! Making a workspace, once for each `Idempotency-Key`.

use serde_json::json;

use super::App;
use super::call::{Answered, Refused};
use super::idempotency::{self, Scope};
use super::keyed::Keyed;
use crate::domain::id::{UserId, WorkspaceId};
use crate::domain::people::Workspace;
use crate::identity::PeopleError;
use crate::work::CallError;

/// A workspace to be.
#[derive(Debug)]
pub struct NewWorkspace<'a> {
    /// Who owns it.
    pub owner: UserId,
    /// For people.
    pub name: &'a str,
    /// Nothing: made of the name.
    pub slug: Option<&'a str>,
    /// As sent.
    pub idempotency_key: Option<String>,
}

/// Why there is no workspace.
#[derive(Debug)]
pub enum NotMade {
    /// What was asked for cannot be.
    People(PeopleError),
    /// Its key says so.
    Refused(Refused),
}

impl From<Refused> for NotMade {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// Makes a workspace, or answers as the first time.
///
/// # Errors
/// See [`NotMade`]; nothing was made.
pub async fn create(
    app: &App,
    new: NewWorkspace<'_>,
    render: impl Fn(Workspace) -> String,
) -> Result<Answered, NotMade> {
    let keyed = claim(app, &new)?;
    if let Some(first) = earlier(app, keyed.as_ref()).await? {
        return Ok(first);
    }
    let answered = |workspace: &Workspace| Answered {
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
        Err(error) => earlier(app, keyed.as_ref()).await?.ok_or(NotMade::People(error)),
    }
}

/// What was answered to the key before, here or by another node meanwhile.
async fn earlier(app: &App, keyed: Option<&Keyed>) -> Result<Option<Answered>, Refused> {
    match keyed {
        Some(keyed) => keyed.stored(app).await?.transpose(),
        None => Ok(None),
    }
}

/// A workspace that does not exist yet has no id to keep its key under.
fn claim(app: &App, new: &NewWorkspace<'_>) -> Result<Option<Keyed>, Refused> {
    let Some(key) = &new.idempotency_key else { return Ok(None) };
    let scope = Scope {
        workspace: WorkspaceId(uuid::Uuid::nil()),
        user: new.owner,
        operation: "create_workspace".to_owned(),
        key: key.clone(),
    };
    let body = idempotency::of_json(&json!({ "name": new.name, "slug": new.slug }));
    let body = body.map_err(|error| Refused::Failed(CallError::Host(error.into())))?;
    Keyed::claim(app, scope, body).map(Some)
}
