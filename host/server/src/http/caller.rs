//! Authenticates and authorizes the caller of an area's operation: by a session, an access token, a
//! signed link, or a session and a link.

use axum::http::request::Parts;

use super::code::Code;
use super::context::RequestContext;
use super::parameters::{RawParameters, uuid};
use super::problem::Refusal;
use super::{bearer, session};
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::manifest::{LinkHolder, SignedLinkSpec, WorkspaceSource};
use assurance_core::domain::role::Role;
use assurance_core::links::{self, LinkGrant};
use assurance_identity::{AuthenticatedCredential, SessionPrincipal};
use assurance_service::app::App;
use assurance_service::app::call::Caller;
use assurance_service::registry::RouteMatch;

/// Returns the session or access token of a request; `None` if a signed link is enough. Access
/// tokens are accepted only if the path contains the workspace, because a token belongs to one
/// workspace.
///
/// # Errors
/// 401 without a session or access token, 403 without the session's CSRF token, or for an access
/// token that is not accepted.
pub(super) async fn enter(
    app: &App,
    found: &RouteMatch<'_, '_>,
    parts: &Parts,
) -> Result<Option<AuthenticatedCredential>, Refusal> {
    let source = &found.route.route.workspace;
    if let WorkspaceSource::SignedLink(SignedLinkSpec { holder: LinkHolder::Bearer, .. }) = source {
        return Ok(None);
    }
    if *source == WorkspaceSource::Path {
        return session::enter(app, parts).await.map(Some);
    }
    let credential = session::enter_or(app, parts, session::no_session).await?;
    bearer::session_only(credential)
        .map(|principal| Some(AuthenticatedCredential::Session(principal)))
}

/// An authorized caller with the workspace of the request.
pub(super) struct AdmittedCaller {
    pub(super) caller: Caller,
    pub(super) workspace: WorkspaceId,
    /// Claims of the signed link that authorized the request; `None` without a link.
    pub(super) claims: Option<String>,
}

/// Authorizes a request before its body is read. Returns `None` if the body names the workspace.
///
/// # Errors
/// 404 if the caller is not a member, 403 if the role is too low or the link is invalid, 429 above
/// a rate limit.
pub(super) async fn admit(
    app: &App,
    context: &RequestContext,
    found: &RouteMatch<'_, '_>,
    credential: Option<&AuthenticatedCredential>,
    given: &RawParameters<'_>,
) -> Result<Option<AdmittedCaller>, Refusal> {
    let route = &found.route.route;
    // Refused requests are counted, too. If a request is refused for another reason as well, that
    // reason is returned instead of the rate limit.
    let spent = credential.map(|who| session::spend_credential(app, context, who, route.rate));
    let admitted = match (&route.workspace, credential) {
        (WorkspaceSource::SignedLink(link), credential) => {
            let principal = credential.and_then(AuthenticatedCredential::session);
            Some(by_link(app, found, link, principal, given).await?)
        }
        (WorkspaceSource::Path, Some(credential)) => {
            let workspace = uuid("workspace_id", given.in_path("workspace_id"))?;
            let workspace = WorkspaceId(workspace);
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

/// Authorizes a caller by the membership in a workspace.
///
/// # Errors
/// 404 if the caller is not a member, 403 if the role is too low.
pub(super) async fn by_membership(
    app: &App,
    found: &RouteMatch<'_, '_>,
    credential: &AuthenticatedCredential,
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
    link: &SignedLinkSpec,
    principal: Option<&SessionPrincipal>,
    given: &RawParameters<'_>,
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
        None => role_of_nonmember(found, link.holder)?,
    };
    let caller = Caller { user, role, session, token: None };
    Ok(AdmittedCaller { caller, workspace, claims: Some(grant.claims) })
}

/// Returns the content of the signed link; `None` if the link is invalid, expired, or for another
/// route or session.
fn granted(
    app: &App,
    found: &RouteMatch<'_, '_>,
    link: &SignedLinkSpec,
    principal: Option<&SessionPrincipal>,
    given: &RawParameters<'_>,
) -> Option<LinkGrant> {
    let token = given.in_query(&link.parameter).ok().flatten()?;
    let session = principal.filter(|_| link.holder == LinkHolder::SameSession);
    let session = session.map(|principal| principal.session.id);
    let grant = links::open(&app.keys, &token, session, app.clock.now())?;
    let here =
        grant.area == found.area.manifest.name && grant.operation == found.route.route.operation_id;
    here.then_some(grant)
}

/// Returns the role of a link's user who is not a member: viewer, if the link may be used by any
/// signed-in user and the route is open to viewers. Otherwise refuses the link.
fn role_of_nonmember(found: &RouteMatch<'_, '_>, holder: LinkHolder) -> Result<Role, Refusal> {
    let open_to_all = found.route.route.least_role == Role::Viewer;
    if holder == LinkHolder::SignedIn && open_to_all { Ok(Role::Viewer) } else { Err(refused()) }
}

/// Returns the refusal of an invalid link; the same for an expired and a forged one.
fn refused() -> Refusal {
    Refusal::new(Code::PermissionDenied, "The link has expired or is not valid.")
        .hint("Ask for a new one where this one came from.")
}
