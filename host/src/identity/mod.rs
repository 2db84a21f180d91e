//! People: who is asking, and what they may do.
//!
//! Invariants: no secret is stored as it is; an answer never tells whether an
//! e-mail has an account; a revoked session is refused by the next request on
//! this node, and by every other node within `session.cache_ms`.

mod attempts;
mod backoff;
mod cache;
mod csrf;
mod mfa;
mod password;
mod people;
mod recovery;
mod second_factor;
mod sessions;
mod sign_in;
mod totp;
mod voucher;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use serde::Serialize;

use self::cache::Cache;
use self::password::Passwords;
use crate::config::{self, Config};
use crate::domain::id::{SessionId, UserId, WorkspaceId};
use crate::domain::people::{Membership, Session, User};
use crate::domain::time::{Clock, Timestamp};
use crate::secrets::Keys;
use crate::store::sessions::TokenHash;
use crate::store::{self, Store};

pub use mfa::{Confirmed, Enrolment};
pub use people::{NewUser, PeopleError, Registration, is_email, normalise_email, slug_of};
pub use second_factor::CodeError;
pub use sign_in::{SignIn, SignInError};
pub use voucher::vouch;

/// The name of the session cookie.
pub const SESSION_COOKIE: &str = "service_session";
/// The name of the cookie of a device that an account has signed in from.
pub const DEVICE_COOKIE: &str = "service_device";

/// Who was recognised is no stranger for so long.
const RECOGNISED_MS: u32 = 15 * 60_000;

/// What an operator decides about people.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// How long they stay signed in.
    pub session: config::Session,
    /// How passwords are hashed.
    pub passwords: config::Passwords,
    /// What wrong attempts lead to.
    pub sign_in: config::SignIn,
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        Self {
            session: config.session.clone(),
            passwords: config.passwords.clone(),
            sign_in: config.sign_in.clone(),
        }
    }
}

/// Who asks: a person, signed in. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Principal {
    /// The person.
    pub user: Arc<User>,
    /// The session they ask with.
    pub session: Arc<Session>,
}

/// A session just made; the only time its cookie is known.
#[derive(Clone)]
pub struct NewSession {
    /// The value of the cookie.
    pub cookie: String,
    /// The new value of the client's device cookie, by which its next sign-in
    /// is recognized; `None` if nobody signed in with a password.
    pub device: Option<String>,
    /// A token for its first write.
    pub csrf_token: String,
    /// Whose it is.
    pub principal: Principal,
}

impl std::fmt::Debug for NewSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewSession").field("principal", &self.principal).finish_non_exhaustive()
    }
}

/// The answer of operation 2.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecurityStatus {
    /// An authenticator is confirmed.
    pub mfa_enabled: bool,
    /// Unused ones.
    pub recovery_codes_remaining: i64,
    /// Too many wrong codes: recovery codes are not taken for a while.
    pub recovery_locked: bool,
    /// Sessions that have not ended, newest first.
    pub sessions: Vec<SessionItem>,
}

/// One session, as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionItem {
    /// For revoking it.
    pub id: SessionId,
    /// When the person signed in.
    pub created_at: Timestamp,
    /// The last use, kept to the minute.
    pub last_seen_at: Timestamp,
    /// When it ends if it is not used again.
    pub expires_at: Timestamp,
    /// Where it was made from.
    pub ip: Option<String>,
    /// What it was made with.
    pub user_agent: Option<String>,
    /// It is the one that asks.
    pub current: bool,
}

/// Everything about people. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Identity(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    keys: Arc<Keys>,
    clock: Clock,
    settings: Settings,
    passwords: Passwords,
    csrf_key: [u8; 32],
    /// Keys the hash under which tried e-mails are counted.
    attempts_key: [u8; 32],
    sessions: Cache<TokenHash, Principal>,
    /// Sessions that were somebody's not long ago.
    recognised: Cache<TokenHash, ()>,
    memberships: Cache<(UserId, WorkspaceId), Membership>,
    last_sweep: AtomicI64,
}

impl Identity {
    /// Prepares everything; asks nothing of the database yet.
    #[must_use]
    pub fn new(store: Store, keys: Arc<Keys>, clock: Clock, settings: Settings) -> Self {
        let cache_ms = settings.session.cache_ms;
        Self(Arc::new(Inner {
            csrf_key: keys.derive("csrf"),
            attempts_key: keys.derive("sign-in attempts"),
            passwords: Passwords::new(&settings.passwords),
            sessions: Cache::new(cache_ms),
            recognised: Cache::new(RECOGNISED_MS),
            memberships: Cache::new(cache_ms),
            last_sweep: AtomicI64::new(0),
            store,
            keys,
            clock,
            settings,
        }))
    }

    /// What the person may do in the workspace; nothing where they are no
    /// member. Costs no question to the database when answered lately.
    ///
    /// # Errors
    /// Where the store cannot be asked.
    pub async fn membership(
        &self,
        user: UserId,
        workspace: WorkspaceId,
    ) -> Result<Option<Membership>, store::Error> {
        let inner = &*self.0;
        let key = (user, workspace);
        let now = inner.clock.now();
        if let Some(known) = inner.memberships.get(&key, now) {
            return Ok(Some(known));
        }
        let ticket = inner.memberships.ticket();
        let mut reader = inner.store.reader().await?;
        let found = store::memberships::find(&mut reader, workspace, user).await?;
        reader.release();
        // That somebody is no member is not kept: who has just become one, by
        // whichever node, comes in with the next request.
        if let Some(found) = &found {
            inner.memberships.put(ticket, key, found.clone(), now);
        }
        Ok(found)
    }
}
