//! Rate limit status for responses to requests without a rate limit check. Every response of the
//! API has the headers.

use std::net::IpAddr;

use axum::http::request::Parts;

use crate::http::client_address::address_of;
use crate::http::headers;
use assurance_identity::SESSION_COOKIE;
use assurance_service::app::{App, RateLimitStatus};

/// Session, access token or address whose rate limit status a response reports. Determined without
/// a database query.
pub(super) struct RateLimitSubject {
    address: IpAddr,
    token: Option<String>,
    cookie: Option<String>,
}

impl RateLimitSubject {
    pub(super) fn of(parts: &Parts, app: &App) -> Self {
        let token = headers::bearer(&parts.headers).map(str::to_owned);
        let cookie = headers::cookie(&parts.headers, SESSION_COOKIE).map(str::to_owned);
        Self { address: address_of(parts, app), token, cookie }
    }

    /// Returns the status of the session or access token if it is in the cache; otherwise the
    /// sign-in limit of the address.
    pub(super) fn status(&self, app: &App) -> Option<RateLimitStatus> {
        let token = self.token.as_deref().and_then(|text| app.identity.remembered_token(text));
        if let Some(known) = token {
            return app.limiter.token_status(known.token.id);
        }
        let known = self.cookie.as_deref().and_then(|cookie| app.identity.remembered(cookie));
        match known {
            Some(principal) => app.limiter.session_status(principal.session.id),
            None => app.limiter.sign_in_status(self.address),
        }
    }
}
