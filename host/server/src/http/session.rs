//! Authenticates requests of the API and checks their CSRF token, role,
//! features and rate, before the body is read. The checks run in the order that
//! the protocol defines.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};

use super::client_address::address_of;
use super::code::Code;
use super::context::{RequestContext, report_limit};
use super::problem::Refusal;
use super::{bearer, headers};
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::manifest::{RateClass, Route};
use assurance_core::domain::people::Membership;
use assurance_core::domain::role::Role;
use assurance_identity::{AuthenticatedCredential, SESSION_COOKIE, SessionPrincipal};
use assurance_service::app::App;
use assurance_store as store;

const CSRF_HEADER: &str = "x-csrf-token";

/// Value of `WWW-Authenticate` where only a session is accepted.
pub(super) const CHALLENGE: &str = "Cookie cookie-name=\"service_session\"";

/// Returns the session or access token of a request. Checks the CSRF token of
/// writes by a session.
///
/// # Errors
/// 401 without a session or access token, 400 with both, 403 without the CSRF
/// token or from a page of another site; 429 if the client's address has sent
/// too many unknown credentials.
pub(super) async fn enter(app: &App, parts: &Parts) -> Result<AuthenticatedCredential, Refusal> {
    enter_or(app, parts, no_credential).await
}

/// Like [`enter`], with the refusal of a request that has no credential.
pub(super) async fn enter_or(
    app: &App,
    parts: &Parts,
    missing: fn() -> Refusal,
) -> Result<AuthenticatedCredential, Refusal> {
    let cookie = headers::cookie(&parts.headers, SESSION_COOKIE);
    match (headers::bearer(&parts.headers), cookie) {
        (Some(_), Some(_)) => Err(bearer::two_credentials()),
        (Some(token), None) => {
            bearer::enter(app, parts, token).await.map(AuthenticatedCredential::Token)
        }
        (None, Some(cookie)) => {
            by_cookie(app, parts, cookie, missing).await.map(AuthenticatedCredential::Session)
        }
        (None, None) => Err(missing()),
    }
}

async fn by_cookie(
    app: &App,
    parts: &Parts,
    cookie: &str,
    missing: fn() -> Refusal,
) -> Result<SessionPrincipal, Refusal> {
    let principal = match app.identity.remembered(cookie) {
        Some(principal) => principal,
        None => {
            let stranger = app.identity.is_stranger(cookie);
            let asking = app.identity.authenticate(cookie);
            find_credential(app, parts, stranger, asking).await?.ok_or_else(missing)?
        }
    };
    if !parts.method.is_safe() {
        let headers = &parts.headers;
        refuse_foreign_page(app, headers)?;
        let token = headers.get(CSRF_HEADER).and_then(|value| value.to_str().ok());
        if !token.is_some_and(|token| app.identity.csrf_valid(&principal, token)) {
            let detail = "X-CSRF-Token: is missing, or is not a token of this session.";
            return Err(Refusal::new(Code::CsrfFailed, detail));
        }
    }
    Ok(principal)
}

/// Reads the owner of a credential from the database. The number of wrong
/// credentials of one address is limited; credentials that this node recognized
/// within the last 15 minutes are exempt.
pub(super) async fn find_credential<T>(
    app: &App,
    parts: &Parts,
    is_stranger: bool,
    asking: impl Future<Output = Result<Option<T>, store::Error>>,
) -> Result<Option<T>, Refusal> {
    let stranger = is_stranger.then(|| address_of(parts, app));
    if let Some(address) = stranger {
        app.limiter.may_guess(address).inspect_err(|spent| report_limit(parts, spent))?;
    }
    let found = asking.await?;
    if let (None, Some(address)) = (&found, stranger) {
        app.limiter.guessed(address);
    }
    Ok(found)
}

/// Refuses a write from a page of another site, by the headers that browsers
/// send.
///
/// # Errors
/// 403 for a page of another site.
pub(super) fn refuse_foreign_page(app: &App, headers: &HeaderMap) -> Result<(), Refusal> {
    if comes_from_foreign_page(headers, &app.base_url, &app.config.api.cors_origins) {
        let detail = "The request comes from a page of another site.";
        let hint = "Send it from a page of this service; operators can allow other origins.";
        return Err(Refusal::new(Code::CsrfFailed, detail).hint(hint));
    }
    Ok(())
}

/// Returns whether the browser's headers name another site. A page of an
/// allowed origin may be of another site. A page of this service is not, so a
/// cross-site request with this service's origin is refused.
fn comes_from_foreign_page(headers: &HeaderMap, own: &str, allowed: &[String]) -> bool {
    let is =
        |value: &HeaderValue, text: &str| value.as_bytes().eq_ignore_ascii_case(text.as_bytes());
    let origins = || headers.get_all(header::ORIGIN).iter();
    let is_allowed = |origin: &HeaderValue| allowed.iter().any(|known| is(origin, known));
    if origins().next().is_some() && origins().all(is_allowed) {
        return false;
    }
    let mut sites = headers.get_all("sec-fetch-site").iter();
    sites.any(|site| is(site, "cross-site"))
        || origins().any(|origin| !is(origin, own) && !is_allowed(origin))
}

/// Returns the caller's membership in a workspace after checking that role and
/// features allow the route.
///
/// # Errors
/// 404 if the caller is not a member or the token is of another workspace; 403
/// if the role or a feature does not allow the route.
pub(super) async fn admit(
    app: &App,
    credential: &AuthenticatedCredential,
    workspace: WorkspaceId,
    route: &Route,
) -> Result<Membership, Refusal> {
    let membership = app.identity.membership_by(credential, workspace).await?;
    let membership = membership.ok_or_else(Refusal::not_found)?;
    check_membership(&membership, route)?;
    Ok(membership)
}

/// Checks that the member's role and the workspace's features allow the route.
///
/// # Errors
/// 403 if they do not.
pub(super) fn check_membership(membership: &Membership, route: &Route) -> Result<(), Refusal> {
    check_role(membership, route.least_role)?;
    if let Some(flag) = route.feature_flag.as_deref().filter(|flag| !membership.has_feature(flag)) {
        let detail = format!("The feature {flag} is switched off in this workspace.");
        return Err(Refusal::new(Code::FeatureDisabled, detail));
    }
    Ok(())
}

/// Checks that the member's role is at least `least`.
///
/// # Errors
/// 403 if it is lower.
pub(super) fn check_role(membership: &Membership, least: Role) -> Result<(), Refusal> {
    let own = membership.role;
    if own < least {
        let detail = format!("This operation needs the role {least}, and yours here is {own}.");
        return Err(Refusal::new(Code::PermissionDenied, detail));
    }
    Ok(())
}

/// Takes the request's units from the rate limit of the session or access
/// token.
///
/// # Errors
/// 429 if too few units are left.
pub(super) fn spend_credential(
    app: &App,
    context: &RequestContext,
    credential: &AuthenticatedCredential,
    class: RateClass,
) -> Result<(), Refusal> {
    let spent = match credential {
        AuthenticatedCredential::Session(principal) => {
            app.limiter.session(principal.session.id, class)
        }
        AuthenticatedCredential::Token(principal) => app.limiter.token(principal.token.id, class),
    };
    context.charge(spent)
}

/// Takes the request's units from the rate limit of the workspace.
///
/// # Errors
/// 429 if too few units are left.
pub(super) fn spend_workspace(
    app: &App,
    context: &RequestContext,
    workspace: WorkspaceId,
    class: RateClass,
) -> Result<(), Refusal> {
    tracing::Span::current().record("workspace.id", tracing::field::display(workspace));
    context.charge_workspace(app.limiter.workspace(workspace, class))
}

fn no_credential() -> Refusal {
    Refusal::new(Code::Unauthenticated, "There is no valid session or access token.")
        .challenge("Cookie cookie-name=\"service_session\", Bearer")
}

/// Returns the refusal of an operation that does not accept access tokens.
pub(super) fn no_session() -> Refusal {
    Refusal::new(Code::Unauthenticated, "There is no valid session.")
        .hint("Sign in with POST /v1/auth/login and send the cookie it sets.")
        .challenge(CHALLENGE)
}

/// Caller of one of the host's own operations, by a session or an access token.
/// The credential, CSRF token and rate limit were checked.
pub(super) struct AuthenticatedCaller(pub(super) AuthenticatedCredential);

impl FromRequestParts<App> for AuthenticatedCaller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        authenticate(parts, app, no_credential).await.map(Self)
    }
}

async fn authenticate(
    parts: &mut Parts,
    app: &App,
    missing: fn() -> Refusal,
) -> Result<AuthenticatedCredential, Refusal> {
    let context = RequestContext::from_request_parts(parts, app).await?;
    let credential = enter_or(app, parts, missing).await?;
    let class = if parts.method.is_safe() { RateClass::Light } else { RateClass::Standard };
    spend_credential(app, &context, &credential, class)?;
    Ok(credential)
}

/// Signed-in caller of one of the host's own operations that does not accept
/// access tokens.
pub(super) struct SignedInUser(pub(super) SessionPrincipal);

impl FromRequestParts<App> for SignedInUser {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        let credential = authenticate(parts, app, no_session).await?;
        bearer::session_only(credential).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_foreign(sent: &[(&'static str, &'static str)]) -> bool {
        let name = axum::http::HeaderName::from_static;
        let sent = sent.iter().map(|(key, value)| (name(key), HeaderValue::from_static(value)));
        let headers = HeaderMap::from_iter(sent);
        comes_from_foreign_page(&headers, "https://a.example", &["https://b.example".into()])
    }

    #[test]
    fn pages_of_other_sites_may_not_write() {
        let (own, allowed) = (("origin", "https://A.example"), ("origin", "https://b.example"));
        let site = |site| ("sec-fetch-site", site);
        for friendly in [
            &[][..],
            &[own],
            &[own, site("same-origin")],
            &[site("none")],
            &[allowed],
            &[allowed, site("cross-site")],
        ] {
            assert!(!is_foreign(friendly), "{friendly:?}");
        }
        let (other, opaque) = (("origin", "https://c.example"), ("origin", "null"));
        for foreign in [
            &[other][..],
            &[opaque],
            &[other, site("same-origin")],
            &[own, site("cross-site")],
            &[site("cross-site")],
            &[site("Cross-Site")],
        ] {
            assert!(is_foreign(foreign), "{foreign:?}");
        }
    }
}
