//! People, authentication, sessions, access tokens and memberships.
//!
//! Invariants: no secret is stored in plain text. Responses never reveal
//! whether an email address has an account. A revoked session or access token
//! is refused from the next request on this node, and by other nodes within
//! `session.cache_ms`.

mod access_tokens;
mod accounts;
mod attempts;
mod backoff;
mod cache;
mod credential;
mod csrf;
mod email_token;
mod members;
mod mfa;
mod new_password;
mod password;
mod people;
mod recovery;
mod second_factor;
mod sessions;
mod sign_in;
mod token_text;
mod totp;
mod uses;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use serde::Serialize;

use self::cache::ExpiringCache;
use self::password::PasswordHasher;
use assurance_core::config::{self, Config};
use assurance_core::domain::id::{SessionId, UserId, WorkspaceId};
use assurance_core::domain::people::{Membership, Session, User};
use assurance_core::domain::time::{Clock, Timestamp};
use assurance_core::secrets::Keys;
use assurance_store::sessions::TokenHash;
use assurance_store::{self as store, Store};

pub use access_tokens::{
    CreateAccessTokenError, IssuedAccessToken, NewAccessToken, TokenPrincipal,
};
pub use credential::AuthenticatedCredential;
pub use email_token::vouch;
pub use members::RemoveMemberError;
pub use mfa::{FactorConfirmationResult, TotpEnrollment};
pub use new_password::{ChangePasswordError, PasswordChange};
pub use people::{NewUser, PeopleError, RegistrationRequest, is_email, normalize_email};
pub use second_factor::CodeError;
pub use sign_in::{SignInAttempt, SignInError};

/// Name of the session cookie.
pub const SESSION_COOKIE: &str = "service_session";
/// Name of the cookie of a device that an account has signed in from.
pub const DEVICE_COOKIE: &str = "service_device";

/// Time for which a session recognized on this node is exempt from the limit
/// for unknown sessions, in milliseconds.
const RECOGNISED_MS: u32 = 15 * 60_000;

/// The operator's settings for identity.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Lifetime, maximum number, cookie and caching of sessions.
    pub session: config::SessionConfig,
    /// Maximum lifetime and number of access tokens.
    pub access_tokens: config::AccessTokensConfig,
    /// Minimum length and hashing of passwords.
    pub passwords: config::PasswordsConfig,
    /// Limits on wrong passwords and codes.
    pub sign_in: config::SignInProtectionConfig,
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        Self {
            session: config.session.clone(),
            access_tokens: config.access_tokens.clone(),
            passwords: config.passwords.clone(),
            sign_in: config.sign_in.clone(),
        }
    }
}

/// The principal of a request with a session: the signed-in person and the
/// session. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SessionPrincipal {
    /// The signed-in person.
    pub user: Arc<User>,
    /// Session of the request, without its secret.
    pub session: Arc<Session>,
}

/// A new session with its cookie, of which only a hash is stored.
#[derive(Clone)]
pub struct NewSession {
    /// Value of the session cookie.
    pub cookie: String,
    /// New value of the client's device cookie, which makes this device known;
    /// `None` unless the person signed in with a password.
    pub device: Option<String>,
    /// CSRF token for writes in this session.
    pub csrf_token: String,
    /// The signed-in person, with the new session.
    pub principal: SessionPrincipal,
}

impl std::fmt::Debug for NewSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewSession").field("principal", &self.principal).finish_non_exhaustive()
    }
}

/// Security status of an account, as its owner sees it (the contract's
/// operation 2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccountSecurityStatus {
    /// Whether the account has a confirmed authenticator.
    pub mfa_enabled: bool,
    /// Number of unused recovery codes.
    pub recovery_codes_remaining: i64,
    /// Whether recovery codes are locked after too many wrong codes.
    pub recovery_locked: bool,
    /// Sessions that have not ended, newest first.
    pub sessions: Vec<SessionItem>,
}

/// One session, as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionItem {
    /// Id, used to revoke the session.
    pub id: SessionId,
    /// Time at which the session was created.
    pub created_at: Timestamp,
    /// Time of the session's last use, to the minute.
    pub last_seen_at: Timestamp,
    /// Time at which the session ends if it is not used again.
    pub expires_at: Timestamp,
    /// IP address of the sign-in request; `None` if an operator created the
    /// session.
    pub ip: Option<String>,
    /// `User-Agent` of the sign-in request, or the label of a session that an
    /// operator created.
    pub user_agent: Option<String>,
    /// Whether this is the session of the current request.
    pub current: bool,
}

/// Access to people, sessions and memberships. Cheap to clone.
#[derive(Clone, Debug)]
pub struct IdentityService(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    keys: Arc<Keys>,
    clock: Clock,
    settings: Settings,
    passwords: PasswordHasher,
    csrf_key: [u8; 32],
    /// Key of the hash under which sign-in attempts on an email address are
    /// counted.
    attempts_key: [u8; 32],
    sessions: ExpiringCache<TokenHash, SessionPrincipal>,
    tokens: ExpiringCache<TokenHash, TokenPrincipal>,
    /// Hashes of sessions and access tokens that were authenticated on this
    /// node within [`RECOGNISED_MS`]; kept after their end.
    recognised: ExpiringCache<TokenHash, ()>,
    memberships: ExpiringCache<(UserId, WorkspaceId), Membership>,
    last_sweep: AtomicI64,
}

impl IdentityService {
    /// Creates the service without a query to the database.
    #[must_use]
    pub fn new(store: Store, keys: Arc<Keys>, clock: Clock, settings: Settings) -> Self {
        let cache_ms = settings.session.cache_ms;
        Self(Arc::new(Inner {
            csrf_key: keys.derive("csrf"),
            attempts_key: keys.derive("sign-in attempts"),
            passwords: PasswordHasher::new(&settings.passwords),
            sessions: ExpiringCache::new(cache_ms),
            tokens: ExpiringCache::new(cache_ms),
            recognised: ExpiringCache::new(RECOGNISED_MS),
            memberships: ExpiringCache::new(cache_ms),
            last_sweep: AtomicI64::new(0),
            store,
            keys,
            clock,
            settings,
        }))
    }

    /// Returns the person's membership of the workspace; `None` if the person
    /// is not a member. Cached for at most `session.cache_ms`.
    ///
    /// # Errors
    /// The database is unavailable.
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
        let found = inner.store.read(async |c| store::memberships::find(c, workspace, user).await);
        let found = found.await?;
        // Only memberships are cached, so that a new member has access from the
        // next request on any node.
        if let Some(found) = &found {
            inner.memberships.put(ticket, key, found.clone(), now);
        }
        Ok(found)
    }
}
