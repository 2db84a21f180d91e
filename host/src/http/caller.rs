//! Who makes a request for an area's operation, and in which workspace: by a
//! session, by a signed link, or by both.

use axum::http::request::Parts;

use super::code::Code;
use super::context::Context;
use super::parameters::Given;
use super::problem::Refusal;
use super::session;
use crate::app::App;
use crate::app::call::Caller;
use crate::domain::id::WorkspaceId;
use crate::domain::manifest::{Link, LinkHolder, WorkspaceSource};
use crate::domain::role::Role;
use crate::identity::Principal;
use crate::links::{self, Grant};
use crate::registry::{self, Match};

/// The session that a request needs, where it needs one.
///
/// # Errors
/// 401 without a session, 403 without its token.
pub(super) async fn enter(
    app: &App,
    found: &Match<'_, '_>,
    parts: &Parts,
) -> Result<Option<Principal>, Refusal> {
    match &found.route.route.workspace {
        WorkspaceSource::SignedLink(Link { holder: LinkHolder::Bearer, .. }) => Ok(None),
        _ => session::enter(app, parts).await.map(Some),
    }
}

/// A caller and the workspace the call is for, admitted.
pub(super) struct Admitted {
    pub(super) caller: Caller,
    pub(super) workspace: WorkspaceId,
    /// The claims of the link that admitted it.
    pub(super) claims: Option<String>,
}

/// Whether a request may come in, as far as that can be told before its body
/// is read; nothing where the body names the workspace.
///
/// # Errors
/// 404 for who is not a member, 403 without the role or with a bad link, 429.
pub(super) async fn admit(
    app: &App,
    context: &Context,
    found: &Match<'_, '_>,
    principal: Option<&Principal>,
    given: &Given<'_>,
) -> Result<Option<Admitted>, Refusal> {
    let route = &found.route.route;
    // What is refused here costs the session as well, and is told before that
    // it has nothing left.
    let spent = principal.map(|who| session::spend_session(app, context, who, route.rate));
    let admitted = match (&route.workspace, principal) {
        (WorkspaceSource::SignedLink(link), principal) => {
            Some(by_link(app, found, link, principal, given).await?)
        }
        (WorkspaceSource::Path, Some(principal)) => {
            let workspace = workspace_in_path(given)?;
            Some(by_membership(app, found, principal, workspace).await?)
        }
        _ => None,
    };
    spent.transpose()?;
    if let Some(admitted) = &admitted {
        session::spend_workspace(app, context, admitted.workspace, route.rate)?;
    }
    Ok(admitted)
}

/// A member, in a workspace of the member's.
///
/// # Errors
/// 404 for who is not a member, 403 without the role.
pub(super) async fn by_membership(
    app: &App,
    found: &Match<'_, '_>,
    principal: &Principal,
    workspace: WorkspaceId,
) -> Result<Admitted, Refusal> {
    let user = principal.user.id;
    let member = session::admit(app, user, workspace, &found.route.route).await?;
    let caller = Caller { user, role: member.role, session: Some(principal.session.id) };
    Ok(Admitted { caller, workspace, claims: None })
}

async fn by_link(
    app: &App,
    found: &Match<'_, '_>,
    link: &Link,
    principal: Option<&Principal>,
    given: &Given<'_>,
) -> Result<Admitted, Refusal> {
    let grant = granted(app, found, link, principal, given).ok_or_else(refused)?;
    let workspace = grant.workspace;
    let session = principal.map(|principal| principal.session.id);
    let user = principal.map(|principal| principal.user.id).or(grant.user).ok_or_else(refused)?;
    let role = match app.identity.membership(user, workspace).await? {
        Some(membership) => {
            session::check_membership(&membership, &found.route.route)?;
            membership.role
        }
        None => role_of_stranger(found, link.holder)?,
    };
    let caller = Caller { user, role, session };
    Ok(Admitted { caller, workspace, claims: Some(grant.claims) })
}

/// What the token grants, if it is one for this route, this moment and, where
/// that matters, this session.
fn granted(
    app: &App,
    found: &Match<'_, '_>,
    link: &Link,
    principal: Option<&Principal>,
    given: &Given<'_>,
) -> Option<Grant> {
    let token = given.in_query(&link.parameter).ok().flatten()?;
    let session = principal.filter(|_| link.holder == LinkHolder::SameSession);
    let session = session.map(|principal| principal.session.id);
    let grant = links::open(&app.keys, &token, session, app.clock.now())?;
    let here =
        grant.area == found.area.manifest.name && grant.operation == found.route.route.operation_id;
    here.then_some(grant)
}

/// Who is not a member, or no longer, can use a link only where the area gives
/// it to whom it likes.
fn role_of_stranger(found: &Match<'_, '_>, holder: LinkHolder) -> Result<Role, Refusal> {
    let open_to_all = found.route.route.least_role == Role::Viewer;
    if holder == LinkHolder::SignedIn && open_to_all { Ok(Role::Viewer) } else { Err(refused()) }
}

/// Why is not told: an expired link and one that never was look the same.
fn refused() -> Refusal {
    Refusal::new(Code::PermissionDenied, "The link has expired or is not valid.")
        .hint("Ask for a new one where this one came from.")
}

fn workspace_in_path(given: &Given<'_>) -> Result<WorkspaceId, Refusal> {
    let text = given.in_path("workspace_id").unwrap_or_default();
    let id = registry::canonical_uuid(text);
    id.map(WorkspaceId).ok_or_else(|| Refusal::invalid_one("workspace_id", "must be a UUID"))
}
