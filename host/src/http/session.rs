//! Who asks, whether the request is really theirs, and what they may do here:
//! the checks between the route and the body, in the order the protocol names.

use std::net::{IpAddr, Ipv4Addr};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};

use super::code::Code;
use super::context::Context;
use super::headers;
use super::listen::Peer;
use super::problem::Refusal;
use crate::app::App;
use crate::domain::id::{UserId, WorkspaceId};
use crate::domain::manifest::{RateClass, Route};
use crate::domain::people::Membership;
use crate::identity::{Principal, SESSION_COOKIE};

const CSRF_HEADER: &str = "x-csrf-token";

/// What a client without a session is told to come back with.
pub(super) const CHALLENGE: &str = "Cookie cookie-name=\"service_session\"";

/// The session's user; on writes, with the session's token.
///
/// # Errors
/// 401 without a session, 403 without the token or from a foreign page; 429
/// where an address has tried too many sessions that nobody has.
pub(super) async fn enter(app: &App, parts: &Parts) -> Result<Principal, Refusal> {
    let headers = &parts.headers;
    let cookie = headers::cookie(headers, SESSION_COOKIE).ok_or_else(no_session)?;
    let principal = match app.identity.remembered(cookie) {
        Some(principal) => principal,
        None => recognise(app, parts, cookie).await?,
    };
    if !parts.method.is_safe() {
        refuse_foreign_page(app, headers)?;
        let token = headers.get(CSRF_HEADER).and_then(|value| value.to_str().ok());
        if !token.is_some_and(|token| app.identity.csrf_valid(&principal, token)) {
            let detail = "X-CSRF-Token: is missing, or is not a token of this session.";
            return Err(Refusal::new(Code::CsrfFailed, detail));
        }
    }
    Ok(principal)
}

/// Asks the database whose session it is. An address that guesses is not let
/// ask for ever; it shares its limit with nobody who was recognised lately.
async fn recognise(app: &App, parts: &Parts, cookie: &str) -> Result<Principal, Refusal> {
    let stranger = app.identity.is_stranger(cookie).then(|| address_of(parts, app));
    if let Some(address) = stranger {
        app.limiter.may_guess(address)?;
    }
    let found = app.identity.authenticate(cookie).await?;
    if let (None, Some(address)) = (&found, stranger) {
        app.limiter.guessed(address);
    }
    found.ok_or_else(no_session)
}

/// A browser says where a request comes from; other sites may not write.
///
/// # Errors
/// 403 for another site's page.
pub(super) fn refuse_foreign_page(app: &App, headers: &HeaderMap) -> Result<(), Refusal> {
    if comes_from_foreign_page(headers, &app.base_url, &app.config.api.cors_origins) {
        let detail = "The request comes from a page of another site.";
        let hint = "Send it from a page of this service; operators can allow other origins.";
        return Err(Refusal::new(Code::CsrfFailed, detail).hint(hint));
    }
    Ok(())
}

/// A page of an allowed origin may be of another site; a page of this service's
/// own origin is not, so what says both is not believed.
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

/// The user's membership of a workspace, where the role and the workspace's
/// features allow the route.
///
/// # Errors
/// 404 for who is not a member, 403 otherwise.
pub(super) async fn admit(
    app: &App,
    user: UserId,
    workspace: WorkspaceId,
    route: &Route,
) -> Result<Membership, Refusal> {
    let membership = app.identity.membership(user, workspace).await?;
    let membership = membership.ok_or_else(Refusal::not_found)?;
    check_membership(&membership, route)?;
    Ok(membership)
}

/// Whether a member's role and the workspace's features allow the route.
///
/// # Errors
/// 403.
pub(super) fn check_membership(membership: &Membership, route: &Route) -> Result<(), Refusal> {
    if membership.role < route.least_role {
        let detail = format!(
            "This operation needs the role {}, and yours here is {}.",
            route.least_role, membership.role
        );
        return Err(Refusal::new(Code::PermissionDenied, detail));
    }
    if let Some(flag) = route.feature_flag.as_deref().filter(|flag| !membership.has_feature(flag)) {
        let detail = format!("The feature {flag} is switched off in this workspace.");
        return Err(Refusal::new(Code::FeatureDisabled, detail));
    }
    Ok(())
}

/// Takes the request's units from the session.
///
/// # Errors
/// 429.
pub(super) fn spend_session(
    app: &App,
    context: &Context,
    principal: &Principal,
    class: RateClass,
) -> Result<(), Refusal> {
    match app.limiter.session(principal.session.id, class) {
        Ok(standing) => context.stands(standing),
        Err(spent) => {
            context.stands(Some(spent.standing));
            return Err(spent.into());
        }
    }
    Ok(())
}

/// Takes the request's units from the workspace.
///
/// # Errors
/// 429.
pub(super) fn spend_workspace(
    app: &App,
    context: &Context,
    workspace: WorkspaceId,
    class: RateClass,
) -> Result<(), Refusal> {
    match app.limiter.workspace(workspace, class) {
        Ok(standing) => context.workspace_stands(standing),
        Err(spent) => {
            context.workspace_stands(Some(spent.standing));
            return Err(spent.into());
        }
    }
    Ok(())
}

fn no_session() -> Refusal {
    Refusal::new(Code::Unauthenticated, "There is no valid session.").challenge(CHALLENGE)
}

/// A signed-in caller of one of the host's own operations: session, token and
/// rate are checked.
pub(super) struct SignedIn(pub(super) Principal);

impl FromRequestParts<App> for SignedIn {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        let context = Context::from_request_parts(parts, app).await?;
        let principal = enter(app, parts).await?;
        let class = if parts.method.is_safe() { RateClass::Light } else { RateClass::Standard };
        spend_session(app, &context, &principal, class)?;
        Ok(Self(principal))
    }
}

/// Where the client is, as far as it can be known.
pub(super) struct ClientAddress(pub(super) IpAddr);

impl FromRequestParts<App> for ClientAddress {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        Ok(Self(address_of(parts, app)))
    }
}

pub(super) fn address_of(parts: &Parts, app: &App) -> IpAddr {
    let peer = parts.extensions.get::<Peer>().map(|peer| peer.0.ip().to_canonical());
    let peer = peer.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    client_address(peer, &parts.headers, &app.config.api.trusted_proxies)
}

/// The last address in `X-Forwarded-For` that no trusted proxy has.
fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[String]) -> IpAddr {
    let mut address = peer;
    let forwarded = headers.get_all("x-forwarded-for").iter();
    let listed: Vec<&str> = forwarded
        .filter_map(|value: &HeaderValue| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .collect();
    for hop in listed.iter().rev() {
        if !is_trusted(address, trusted) {
            break;
        }
        match hop.trim().parse::<IpAddr>() {
            Ok(before) => address = before.to_canonical(),
            Err(_) => break,
        }
    }
    address
}

/// Whether an address is one of the trusted proxies or in one of their networks.
pub(super) fn is_trusted(address: IpAddr, trusted: &[String]) -> bool {
    trusted.iter().any(|known| match known.parse::<ipnet::IpNet>() {
        Ok(network) => network.contains(&address),
        Err(_) => known.parse() == Ok(address),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(peer: &str, forwarded: &'static str, trusted: &[&str]) -> String {
        let name = axum::http::HeaderName::from_static("x-forwarded-for");
        let headers = HeaderMap::from_iter([(name, HeaderValue::from_static(forwarded))]);
        let trusted: Vec<String> = trusted.iter().map(ToString::to_string).collect();
        client_address(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

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

    #[test]
    fn only_trusted_proxies_are_believed() {
        assert_eq!(from("192.0.2.9", "198.51.100.1", &[]), "192.0.2.9");
        assert_eq!(from("10.0.0.1", "198.51.100.1", &["10.0.0.0/8"]), "198.51.100.1");
        let spoofed = "203.0.113.5, 198.51.100.1, 10.0.0.2";
        assert_eq!(from("10.0.0.1", spoofed, &["10.0.0.0/8"]), "198.51.100.1");
        assert_eq!(from("10.0.0.1", "nonsense", &["10.0.0.1"]), "10.0.0.1");
    }
}
