//! Sessions: made, recognised, ended.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::{Identity, NewSession, Principal, SecurityStatus, SessionItem, backoff, csrf};
use crate::domain::id::{SessionId, UserId};
use crate::domain::people::{Session, User};
use crate::domain::time::Timestamp;
use crate::store::connection::Connection;
use crate::store::sessions::TokenHash;
use crate::store::{self, Access, mfa, sessions, sign_in_failures, sign_in_places, users};

/// A use is noted at most so often.
const TOUCH_MS: i64 = 60_000;
/// What has ended is removed about so often, by whoever signs in.
const SWEEP_MS: i64 = 600_000;
/// Longest user agent kept, in characters.
const MAX_USER_AGENT: usize = 300;

/// Where a session is made from, as its owner will see it.
#[derive(Clone, Debug, Default)]
pub(super) struct Origin {
    pub(super) ip: Option<String>,
    pub(super) user_agent: Option<String>,
}

impl Origin {
    pub(super) fn new(ip: Option<IpAddr>, user_agent: Option<String>) -> Self {
        Self { ip: ip.map(|ip| ip.to_canonical().to_string()), user_agent }
    }
}

impl Identity {
    /// Whose session is this, where that was asked within the last second?
    /// Costs no question to the database.
    #[must_use]
    pub fn remembered(&self, cookie: &str) -> Option<Principal> {
        let now = self.0.clock.now();
        let known = self.0.sessions.get(&hash_of(cookie)?, now)?;
        (known.session.ends_at(self.idle_ms()) > now).then_some(known)
    }

    /// Whether the database would be asked for a session that was not
    /// recognised here for a while, if it ever was.
    #[must_use]
    pub fn is_stranger(&self, cookie: &str) -> bool {
        let hash = hash_of(cookie);
        hash.is_some_and(|hash| self.0.recognised.get(&hash, self.0.clock.now()).is_none())
    }

    /// Whose session is this? Costs no question to the database when answered
    /// lately. Notes the use, at most once a minute.
    ///
    /// # Errors
    /// Where the store cannot be asked.
    pub async fn authenticate(&self, cookie: &str) -> Result<Option<Principal>, store::Error> {
        let Some(token_hash) = hash_of(cookie) else { return Ok(None) };
        if let Some(principal) = self.remembered(cookie) {
            return Ok(Some(principal));
        }
        let found = self.find(token_hash).await?;
        let recognised = &self.0.recognised;
        match found {
            Some(_) => {
                recognised.put(recognised.ticket(), token_hash, (), self.0.clock.now());
            }
            None => recognised.invalidate(&token_hash),
        }
        Ok(found)
    }

    async fn find(&self, token_hash: TokenHash) -> Result<Option<Principal>, store::Error> {
        let inner = &*self.0;
        let now = inner.clock.now();
        let ticket = inner.sessions.ticket();
        let mut reader = inner.store.reader().await?;
        let found = sessions::find(&mut reader, &token_hash).await?;
        reader.release();
        let Some((session, user)) = found else { return Ok(None) };
        if session.ends_at(self.idle_ms()) <= now {
            return Ok(None);
        }
        let session = self.touched(session, now).await;
        let principal = Principal { user: Arc::new(user), session: Arc::new(session) };
        inner.sessions.put(ticket, token_hash, principal.clone(), now);
        Ok(Some(principal))
    }

    /// Ends the session that asks.
    ///
    /// # Errors
    /// Where the store cannot be asked.
    pub async fn sign_out(&self, principal: &Principal) -> Result<(), store::Error> {
        self.revoke(principal.user.id, principal.session.id).await.map(|_| ())
    }

    /// Ends one of a person's sessions; false where it is not theirs, or has
    /// ended.
    ///
    /// # Errors
    /// Where the store cannot be asked.
    pub async fn revoke(&self, user: UserId, id: SessionId) -> Result<bool, store::Error> {
        let mut writer = self.0.store.writer().await?;
        let ended = sessions::delete(&mut writer, user, id).await?;
        writer.release();
        self.forget_sessions(ended.as_slice());
        Ok(ended.is_some())
    }

    /// Ends all of a person's sessions; tells how many.
    ///
    /// # Errors
    /// Where the store cannot be asked.
    pub async fn revoke_all(&self, user: UserId) -> Result<usize, store::Error> {
        let mut writer = self.0.store.writer().await?;
        let ended = sessions::delete_all(&mut writer, user).await?;
        writer.release();
        self.forget_sessions(&ended);
        Ok(ended.len())
    }

    /// Operation 2: how well the account is kept, and where it is signed in.
    ///
    /// # Errors
    /// Where the store cannot be asked.
    pub async fn security_status(
        &self,
        principal: &Principal,
    ) -> Result<SecurityStatus, store::Error> {
        let now = self.0.clock.now();
        let user = principal.user.id;
        let mut tx = self.0.store.begin(Access::Read).await?;
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
        Ok(SecurityStatus {
            mfa_enabled: factors.enabled,
            recovery_codes_remaining: if factors.enabled { factors.recovery_codes } else { 0 },
            recovery_locked: factors.recovery_locked_until > now,
            sessions: open.into_iter().map(item).collect(),
        })
    }

    /// Makes a session without a password, for the command line.
    ///
    /// # Errors
    /// Where the store cannot be asked.
    pub async fn issue(&self, user: User, label: &str) -> Result<NewSession, store::Error> {
        let origin = Origin { ip: None, user_agent: Some(label.to_owned()) };
        let mut tx = self.0.store.begin(Access::WriteLocked).await?;
        let (made, ended) = self.open_session(&mut tx, user, origin).await?;
        tx.commit().await?;
        self.forget_sessions(&ended);
        Ok(made)
    }

    /// Writes a new session and ends the oldest beyond the limit, whose hashes
    /// are to be forgotten once the transaction is kept.
    pub(super) async fn open_session(
        &self,
        connection: &mut Connection,
        user: User,
        origin: Origin,
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
            principal: Principal { user: Arc::new(user), session: Arc::new(session) },
        };
        Ok((made, ended))
    }

    /// Drops what this node knows of ended sessions.
    pub(super) fn forget_sessions(&self, ended: &[TokenHash]) {
        for token_hash in ended {
            self.0.sessions.invalidate(token_hash);
        }
    }

    fn new_session(&self, origin: Origin, now: Timestamp) -> Session {
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

    /// Notes the use: beside the request where others write, since who reads
    /// does not wait for them. That it could not be noted is no reason to
    /// refuse it.
    async fn touched(&self, mut session: Session, now: Timestamp) -> Session {
        let every = TOUCH_MS.min(self.idle_ms() / 4);
        if now.ms_since(session.last_seen_at) < every {
            return session;
        }
        let (store, id) = (self.0.store.clone(), session.id);
        let noted = match store.writer_if_free().await {
            Ok(Some(writer)) => touch(writer, id, now, every).await,
            Ok(None) => {
                tokio::spawn(async move {
                    let noted = async { touch(store.writer().await?, id, now, every).await };
                    noted.await.unwrap_or_else(not_noted);
                });
                Ok(())
            }
            Err(error) => Err(error),
        };
        match noted {
            Ok(()) => session.last_seen_at = now,
            Err(error) => not_noted(error),
        }
        session
    }

    /// Removes what has ended. On its own, so that it never holds a sign-in's
    /// rows; that it failed is no reason to refuse one.
    pub(super) async fn sweep_sometimes(&self, now: Timestamp) {
        let last = self.0.last_sweep.load(Ordering::Relaxed);
        if now.ms_since(Timestamp(last)) < SWEEP_MS {
            return;
        }
        self.0.last_sweep.store(now.0, Ordering::Relaxed);
        let forget_ms = i64::from(self.0.settings.sign_in.forget_minutes) * 60_000;
        // Failures that count by the day are needed for one.
        let forget_ms = forget_ms.max(backoff::DAY_MS);
        let swept = async {
            let mut writer = self.0.store.writer().await?;
            sessions::sweep(&mut writer, now, self.idle_since(now)).await?;
            sign_in_failures::sweep(&mut writer, now.plus_ms(-forget_ms)).await?;
            sign_in_places::sweep(&mut writer, self.known_since(now)).await?;
            writer.release();
            Ok::<_, store::Error>(())
        };
        if let Err(error) = swept.await {
            tracing::warn!(%error, "ended sessions could not be removed");
        }
    }

    pub(super) fn idle_ms(&self) -> i64 {
        i64::from(self.0.settings.session.idle_minutes) * 60_000
    }

    fn idle_since(&self, now: Timestamp) -> Timestamp {
        now.plus_ms(-self.idle_ms())
    }
}

async fn touch(
    mut writer: Connection,
    session: SessionId,
    now: Timestamp,
    every_ms: i64,
) -> Result<(), store::Error> {
    sessions::touch(&mut writer, session, now, now.plus_ms(-every_ms)).await?;
    writer.release();
    Ok(())
}

fn not_noted(error: store::Error) {
    tracing::warn!(%error, "the use of a session could not be noted");
}

/// Only a token of the right form is worth a question.
fn hash_of(cookie: &str) -> Option<TokenHash> {
    let token = Zeroizing::new(URL_SAFE_NO_PAD.decode(cookie).ok()?);
    (token.len() == 32).then(|| Sha256::digest(&*token).into())
}
