//! Creates, authenticates and ends sessions.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::uses::UsedCredential;
use super::{
    AccountSecurityStatus, IdentityService, NewSession, PeopleError, SessionItem, SessionPrincipal,
    backoff, csrf,
};
use assurance_core::domain::id::{SessionId, UserId};
use assurance_core::domain::people::{Session, User};
use assurance_core::domain::time::Timestamp;
use assurance_store::connection::Connection;
use assurance_store::sessions::TokenHash;
use assurance_store::{
    self as store, TransactionAccess, mfa, sessions, sign_in_failures, sign_in_places, users,
};

/// Minimum interval between two recorded uses of a session, in milliseconds.
const TOUCH_MS: i64 = 60_000;
/// Interval at which a sign-in also removes ended sessions, in milliseconds.
const SWEEP_MS: i64 = 600_000;
/// Maximum length of a stored user agent, in characters; the rest is cut off.
const MAX_USER_AGENT: usize = 300;

/// Origin of a session: client address and user agent, shown to the session's
/// owner.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionOrigin {
    pub(super) ip: Option<String>,
    pub(super) user_agent: Option<String>,
}

impl SessionOrigin {
    pub(super) fn new(ip: Option<IpAddr>, user_agent: Option<String>) -> Self {
        Self { ip: ip.map(|ip| ip.to_canonical().to_string()), user_agent }
    }
}

impl IdentityService {
    /// Returns the person and session of a session cookie that this node
    /// authenticated within `session.cache_ms`; `None` otherwise. Sends no
    /// query to the database.
    #[must_use]
    pub fn remembered(&self, cookie: &str) -> Option<SessionPrincipal> {
        let now = self.0.clock.now();
        let known = self.0.sessions.get(&hash_of(cookie)?, now)?;
        (known.session.ends_at(self.idle_ms()) > now).then_some(known)
    }

    /// Returns whether this node has not recognized the session within the last
    /// 15 minutes; false for a malformed cookie.
    #[must_use]
    pub fn is_stranger(&self, cookie: &str) -> bool {
        hash_of(cookie).is_some_and(|hash| !self.is_recognised(&hash))
    }

    /// Returns whether this node recognized a session or token with this hash
    /// within the last 15 minutes.
    pub(super) fn is_recognised(&self, token_hash: &TokenHash) -> bool {
        self.0.recognised.get(token_hash, self.0.clock.now()).is_some()
    }

    /// Records whether a session or token with this hash is valid.
    pub(super) fn recognize(&self, token_hash: TokenHash, is_somebodys: bool) {
        let recognised = &self.0.recognised;
        if is_somebodys {
            recognised.put(recognised.ticket(), token_hash, (), self.0.clock.now());
        } else {
            recognised.invalidate(&token_hash);
        }
    }

    /// Returns the person and session of a cookie, from the cache or the
    /// database; `None` if the session is not valid. Records the use, at most
    /// once per minute.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn authenticate(
        &self,
        cookie: &str,
    ) -> Result<Option<SessionPrincipal>, store::Error> {
        let Some(token_hash) = hash_of(cookie) else { return Ok(None) };
        if let Some(principal) = self.remembered(cookie) {
            return Ok(Some(principal));
        }
        let found = self.find(token_hash).await?;
        self.recognize(token_hash, found.is_some());
        Ok(found)
    }

    async fn find(&self, token_hash: TokenHash) -> Result<Option<SessionPrincipal>, store::Error> {
        let inner = &*self.0;
        let now = inner.clock.now();
        let ticket = inner.sessions.ticket();
        let found = inner.store.read(async |c| sessions::find(c, &token_hash).await).await?;
        let Some((session, user)) = found else { return Ok(None) };
        if session.ends_at(self.idle_ms()) <= now {
            return Ok(None);
        }
        let session = self.touched(session, now).await;
        let principal = SessionPrincipal { user: Arc::new(user), session: Arc::new(session) };
        inner.sessions.put(ticket, token_hash, principal.clone(), now);
        Ok(Some(principal))
    }

    /// Ends the session of this request.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn sign_out(&self, principal: &SessionPrincipal) -> Result<(), store::Error> {
        self.revoke(principal.user.id, principal.session.id).await.map(|_| ())
    }

    /// Ends one of a person's sessions. Returns false if it belongs to another
    /// person or has already ended.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn revoke(&self, user: UserId, id: SessionId) -> Result<bool, store::Error> {
        let ended = self.0.store.write(async |c| sessions::delete(c, user, id).await).await?;
        self.forget_sessions(ended.as_slice());
        Ok(ended.is_some())
    }

    /// Ends all of a person's sessions; returns their number.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn revoke_all(&self, user: UserId) -> Result<usize, store::Error> {
        let ended = self.0.store.write(async |c| sessions::delete_all(c, user).await).await?;
        self.forget_sessions(&ended);
        Ok(ended.len())
    }

    /// Returns the security status of the account (the contract's operation 2).
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn security_status(
        &self,
        principal: &SessionPrincipal,
    ) -> Result<AccountSecurityStatus, store::Error> {
        let now = self.0.clock.now();
        let user = principal.user.id;
        let mut tx = self.0.store.begin(TransactionAccess::Read).await?;
        let factors = mfa::status(&mut tx, user).await?;
        let open = sessions::list(&mut tx, user, now, self.idle_since(now)).await?;
        tx.commit().await?;
        let item = |session: Session| SessionItem {
            current: session.id == principal.session.id,
            expires_at: session.ends_at(self.idle_ms()),
            id: session.id,
            created_at: session.created_at,
            last_seen_at: session.last_seen_at,
            ip: session.ip,
            user_agent: session.user_agent,
        };
        Ok(AccountSecurityStatus {
            mfa_enabled: factors.enabled,
            recovery_codes_remaining: if factors.enabled { factors.recovery_codes } else { 0 },
            recovery_locked: factors.recovery_locked_until > now,
            sessions: open.into_iter().map(item).collect(),
        })
    }

    /// Creates a session without a password, for the command line. `label` is
    /// stored as the user agent.
    ///
    /// # Errors
    /// [`PeopleError::Disabled`], or the database is unavailable.
    pub async fn issue(&self, user: User, label: &str) -> Result<NewSession, PeopleError> {
        let origin = SessionOrigin { ip: None, user_agent: Some(label.to_owned()) };
        let email = user.email.clone();
        let mut tx = self.0.store.begin(TransactionAccess::WriteLocked).await?;
        let opened = self.open_session(&mut tx, user, origin).await;
        let (made, ended) = opened.map_err(|error| match error {
            store::Error::NotFound => PeopleError::Disabled(email),
            other => other.into(),
        })?;
        tx.commit().await?;
        self.forget_sessions(&ended);
        Ok(made)
    }

    /// Stores a new session and ends the person's oldest sessions beyond the
    /// maximum number. After the commit, pass the returned hashes of ended
    /// sessions to [`IdentityService::forget_sessions`].
    pub(super) async fn open_session(
        &self,
        connection: &mut Connection,
        user: User,
        origin: SessionOrigin,
    ) -> Result<(NewSession, Vec<TokenHash>), store::Error> {
        let inner = &*self.0;
        let now = inner.clock.now();
        users::note_sign_in(connection, user.id, now).await?;
        let token: Zeroizing<[u8; 32]> = Zeroizing::new(rand::random());
        let token_hash: TokenHash = Sha256::digest(*token).into();
        let session = self.new_session(origin, now);
        sessions::insert(connection, user.id, &token_hash, &session).await?;
        let most = inner.settings.session.max_per_user;
        let ended = sessions::delete_beyond(connection, user.id, most).await?;
        let made = NewSession {
            cookie: URL_SAFE_NO_PAD.encode(*token),
            device: None,
            csrf_token: csrf::token(&inner.csrf_key, session.id),
            principal: SessionPrincipal { user: Arc::new(user), session: Arc::new(session) },
        };
        Ok((made, ended))
    }

    /// Removes ended sessions from this node's cache.
    pub(super) fn forget_sessions(&self, ended: &[TokenHash]) {
        for token_hash in ended {
            self.0.sessions.invalidate(token_hash);
        }
    }

    fn new_session(&self, origin: SessionOrigin, now: Timestamp) -> Session {
        let hours = i64::from(self.0.settings.session.absolute_hours);
        Session {
            id: SessionId::new(),
            created_at: now,
            last_seen_at: now,
            expires_at: now.plus_ms(hours * 3_600_000),
            ip: origin.ip,
            user_agent: origin.user_agent.map(|text| text.chars().take(MAX_USER_AGENT).collect()),
        }
    }

    async fn touched(&self, mut session: Session, now: Timestamp) -> Session {
        let every = TOUCH_MS.min(self.idle_ms() / 4);
        if now.ms_since(session.last_seen_at) >= every
            && self.note_use(UsedCredential::Session(session.id), now, every).await
        {
            session.last_seen_at = now;
        }
        session
    }

    /// Deletes ended sessions, old counts of failures and devices and networks
    /// that are no longer known, at most every ten minutes. Uses a separate
    /// transaction, so that no sign-in's rows are locked. A failure does not
    /// refuse the sign-in.
    pub(super) async fn sweep_sometimes(&self, now: Timestamp) {
        let last = self.0.last_sweep.load(Ordering::Relaxed);
        if now.ms_since(Timestamp(last)) < SWEEP_MS {
            return;
        }
        self.0.last_sweep.store(now.0, Ordering::Relaxed);
        let forget_ms = i64::from(self.0.settings.sign_in.forget_minutes) * 60_000;
        // Failures that count towards a daily limit must be kept for a day.
        let forget_ms = forget_ms.max(backoff::DAY_MS);
        let swept = self.0.store.write(async |c| {
            sessions::sweep(c, now, self.idle_since(now)).await?;
            sign_in_failures::sweep(c, now.plus_ms(-forget_ms)).await?;
            sign_in_places::sweep(c, self.known_since(now)).await
        });
        if let Err(error) = swept.await {
            tracing::warn!(%error, "cannot delete ended sessions");
        }
    }

    pub(super) fn idle_ms(&self) -> i64 {
        i64::from(self.0.settings.session.idle_minutes) * 60_000
    }

    fn idle_since(&self, now: Timestamp) -> Timestamp {
        now.plus_ms(-self.idle_ms())
    }
}

/// Returns the hash of a session's token; `None` for a malformed cookie, which
/// needs no query.
fn hash_of(cookie: &str) -> Option<TokenHash> {
    let token = Zeroizing::new(URL_SAFE_NO_PAD.decode(cookie).ok()?);
    (token.len() == 32).then(|| Sha256::digest(&*token).into())
}
