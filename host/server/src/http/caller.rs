//! Who makes a request for an area's operation, and in which workspace: by a
//! session, an access token, a signed link, or a session and a link.

use axum::http::request::Parts;

use super::code::Code;
use super::context::RequestContext;
use super::parameters::RequestParameters;
use super::problem::Refusal;
use super::{bearer, session};
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::manifest::{Link, LinkHolder, WorkspaceSource};
use assurance_core::domain::role::Role;
use assurance_core::links::{self, LinkGrant};
use assurance_identity::{Credential, Principal};
use assurance_service::app::App;
use assurance_service::app::call::Caller;
use assurance_service::registry::RouteMatch;

/// The session or access token that a request needs, where it needs one. Access
/// tokens are taken where the path names the workspace: they open only one.
///
/// # Errors
/// 401 without either, 403 without the session's CSRF token, or with an access
/// token elsewhere.
pub(super) async fn enter(
    app: &App,
    found: &RouteMatch<'_, '_>,
    parts: &Parts,
) -> Result<Option<Credential>, Refusal> {
    let source = &found.route.route.workspace;
    if let WorkspaceSource::SignedLink(Link { holder: LinkHolder::Bearer, .. }) = source {
        return Ok(None);
    }
    let credential = session::enter(app, parts).await?;
    if *source == WorkspaceSource::Path {
        return Ok(Some(credential));
    }
    bearer::session_only(credential).map(|principal| Some(Credential::Session(principal)))
}

/// A caller and the workspace the call is for, admitted.
pub(super) struct AdmittedCaller {
    pub(super) caller: Caller,
    pub(super) workspace: WorkspaceId,
    /// The claims of the link that admitted it.
    pub(super) claims: Option<String>,
}

/// Whether a request is admitted, as far as that is known before its body
/// is read; `None` if the body names the workspace.
///
/// # Errors
/// 404 for who is not a member, 403 without the role or with a bad link, 429.
pub(super) async fn admit(
    app: &App,
    context: &RequestContext,
    found: &RouteMatch<'_, '_>,
    credential: Option<&Credential>,
    given: &RequestParameters<'_>,
) -> Result<Option<AdmittedCaller>, Refusal> {
    let route = &found.route.route;
    // What is refused here costs the session as well, and is reported before that
    // it has nothing left.
    let spent = credential.map(|who| session::spend_credential(app, context, who, route.rate));
    let admitted = match (&route.workspace, credential) {
        (WorkspaceSource::SignedLink(link), credential) => {
            let principal = credential.and_then(Credential::session);
            Some(by_link(app, found, link, principal, given).await?)
        }
        (WorkspaceSource::Path, Some(credential)) => {
            let workspace = workspace_in_path(given)?;
            Some(by_membership(app, found, credential, workspace).await?)
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
    found: &RouteMatch<'_, '_>,
    credential: &Credential,
    workspace: WorkspaceId,
) -> Result<AdmittedCaller, Refusal> {
    let member = session::admit(app, credential, workspace, &found.route.route).await?;
    let caller = Caller {
        user: credential.user().id,
        role: member.role,
        session: credential.session_id(),
        token: credential.token_id(),
    };
    Ok(AdmittedCaller { caller, workspace, claims: None })
}

async fn by_link(
    app: &App,
    found: &RouteMatch<'_, '_>,
    link: &Link,
    principal: Option<&Principal>,
    given: &RequestParameters<'_>,
) -> Result<AdmittedCaller, Refusal> {
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
    let caller = Caller { user, role, session, token: None };
    Ok(AdmittedCaller { caller, workspace, claims: Some(grant.claims) })
}

/// What the token grants, if it is one for this route, this moment and, where
/// that matters, this session.
fn granted(
    app: &App,
    found: &RouteMatch<'_, '_>,
    link: &Link,
    principal: Option<&Principal>,
    given: &RequestParameters<'_>,
) -> Option<LinkGrant> {
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
fn role_of_stranger(found: &RouteMatch<'_, '_>, holder: LinkHolder) -> Result<Role, Refusal> {
    let open_to_all = found.route.route.least_role == Role::Viewer;
    if holder == LinkHolder::SignedIn && open_to_all { Ok(Role::Viewer) } else { Err(refused()) }
}

/// The same for every invalid link: an expired one and a forged one look the same.
fn refused() -> Refusal {
    Refusal::new(Code::PermissionDenied, "The link has expired or is not valid.")
        .hint("Ask for a new one where this one came from.")
}

fn workspace_in_path(given: &RequestParameters<'_>) -> Result<WorkspaceId, Refusal> {
    let text = given.in_path("workspace_id").unwrap_or_default();
    let id = assurance_contract::canonical_uuid(text);
    id.map(WorkspaceId).ok_or_else(|| Refusal::invalid_one("workspace_id", "must be a UUID"))
}
