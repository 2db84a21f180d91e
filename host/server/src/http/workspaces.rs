//! The workspaces of the signed-in user.

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::code::Code;
use super::extract::{NoQuery, StrictJson, host_body};
use super::problem::Refusal;
use super::session::SignedInUser;
use super::{area, headers, parameters};
use assurance_core::domain::people::Workspace;
use assurance_core::domain::role::Role;
use assurance_identity::PeopleError;
use assurance_service::app::workspaces;
use assurance_service::app::{App, HostOperationError};
use assurance_store as store;

/// A request to create a workspace.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewWorkspace")]
pub(super) struct CreateWorkspaceBody {
    /// Display name of the workspace.
    #[schemars(length(min = 1, max = 120))]
    name: String,
    /// Unique name for URLs: lower-case letters, digits and hyphens. If absent, it is derived from
    /// the name, or from the id if the name has no such characters.
    #[schemars(length(min = 1, max = 63))]
    slug: Option<String>,
}
host_body!(CreateWorkspaceBody);

/// A workspace, as one of its members sees it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Workspace")]
pub(super) struct WorkspaceView {
    id: Uuid,
    name: String,
    slug: String,
    /// The caller's role: viewer, member, admin or owner.
    role: String,
    #[schemars(extend("format" = "date-time"))]
    created_at: String,
}

/// One page of workspaces.
#[derive(Serialize, JsonSchema)]
pub(super) struct WorkspacePage {
    items: Vec<WorkspaceView>,
    /// Value for the parameter `cursor` of the next page; null on the last one.
    next_cursor: Option<String>,
}

impl WorkspaceView {
    fn new(workspace: Workspace, role: Role) -> Self {
        Self {
            id: workspace.id.0,
            name: workspace.name,
            slug: workspace.slug,
            role: role.to_string(),
            created_at: workspace.created_at.to_rfc3339(),
        }
    }
}

/// Lists the caller's workspaces, sorted by slug.
pub(super) async fn list(
    State(app): State<App>,
    SignedInUser(principal): SignedInUser,
    RawQuery(query): RawQuery,
) -> Result<Json<WorkspacePage>, Refusal> {
    let page = parameters::page(query.as_deref().unwrap_or_default())?;
    let (user, cursor) = (principal.user.id, page.cursor.as_deref());
    let found = app.identity.workspaces_of(user, cursor, page.limit).await;
    let (found, next_cursor) = found.map_err(not_listed)?;
    let items = found.into_iter().map(|(workspace, role)| WorkspaceView::new(workspace, role));
    Ok(Json(WorkspacePage { items: items.collect(), next_cursor }))
}

/// Creates a workspace. The caller becomes its owner.
pub(super) async fn create(
    State(app): State<App>,
    SignedInUser(principal): SignedInUser,
    headers: HeaderMap,
    _: NoQuery,
    StrictJson(request): StrictJson<CreateWorkspaceBody>,
) -> Result<Response, Refusal> {
    let key = headers::idempotency_key(&headers, false);
    let new = workspaces::NewWorkspace {
        owner: principal.user.id,
        name: &request.name,
        slug: request.slug.as_deref(),
        idempotency_key: key.map_err(|(name, what)| Refusal::invalid_one(name, what))?,
    };
    let render = |workspace| json!(WorkspaceView::new(workspace, Role::Owner)).to_string();
    let made = workspaces::create(&app, new, render).await;
    Ok(area::respond(made.map_err(not_made)?))
}

/// Converts an error of a list of the host's own operations.
pub(super) fn not_listed(error: store::Error) -> Refusal {
    match error {
        store::Error::InvalidCursor => Refusal::invalid_one(
            "cursor",
            "This cursor was changed or belongs to another list; start again without a cursor.",
        ),
        other => other.into(),
    }
}

fn not_made(error: HostOperationError<PeopleError>) -> Refusal {
    match error {
        HostOperationError::Operation(error) => refused(error),
        HostOperationError::Refused(error) => Refusal::of_host_call(error),
    }
}

fn refused(error: PeopleError) -> Refusal {
    match error {
        PeopleError::Store(error) => error.into(),
        PeopleError::InvalidName => Refusal::invalid_one("/name", &error.to_string()),
        PeopleError::InvalidSlug(_) => Refusal::invalid_one("/slug", &error.to_string()),
        PeopleError::TooManyWorkspaces(most) => {
            let detail = format!(
                "You own {most} workspaces, the most that a person who creates another may own \
                 (limits.max_workspaces_per_person)."
            );
            Refusal::new(Code::Conflict, detail)
                .hint("Use one of them, or ask an operator to create another workspace.")
        }
        PeopleError::SlugTaken(_) => {
            Refusal::new(Code::Conflict, format!("/slug: {error}.")).hint("Send another slug.")
        }
        other => Refusal::internal(other),
    }
}
