//! Where whoever asks stands with the rate limits, for answers that took nothing
//! from them: every answer tells it.

use std::net::IpAddr;

use axum::http::request::Parts;

use super::headers;
use super::session::address_of;
use crate::app::{App, Standing};
use crate::identity::SESSION_COOKIE;

/// Who asks, as far as it can be told without asking anybody.
pub(super) struct Asker {
    address: IpAddr,
    cookie: Option<String>,
}

impl Asker {
    pub(super) fn of(parts: &Parts, app: &App) -> Self {
        let cookie = headers::cookie(&parts.headers, SESSION_COOKIE).map(str::to_owned);
        Self { address: address_of(parts, app), cookie }
    }

    /// As a session, where it was recognised for this answer or shortly before;
    /// else as an address, which may sign in so often.
    pub(super) fn standing(&self, app: &App) -> Option<Standing> {
        let known = self.cookie.as_deref().and_then(|cookie| app.identity.remembered(cookie));
        match known {
            Some(principal) => app.limiter.session_standing(principal.session.id),
            None => app.limiter.sign_in_standing(self.address),
        }
    }
}
