//! Access tokens of machines: made, listed, recognized, revoked.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::people::checked_name;
use super::uses::UsedCredential;
use super::{Identity, PeopleError, token_text};
use assurance_core::domain::id::{AccessTokenId, UserId, WorkspaceId};
use assurance_core::domain::people::{AccessToken, User};
use assurance_core::domain::role::Role;
use assurance_core::domain::time::Timestamp;
use assurance_store::sessions::TokenHash;
use assurance_store::{self as store, Access, Tx, access_tokens, memberships, users};

/// Interval at which a use is written, in milliseconds.
const NOTE_USE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;
/// How long an expired token is still listed, in milliseconds.
const LIST_EXPIRED_MS: i64 = 30 * DAY_MS;

/// An access token and its maker. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TokenPrincipal {
    /// The maker, who is not disabled.
    pub user: Arc<User>,
    /// The token, which has not expired.
    pub token: Arc<AccessToken>,
}

/// A request to make a token.
#[derive(Clone, Debug)]
pub struct NewAccessToken {
    /// The workspace that it opens.
    pub workspace: WorkspaceId,
    /// The maker, a member of it.
    pub user: UserId,
    /// For people.
    pub name: String,
    /// Highest role: admin at most, and not above the maker's.
    pub role: Role,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// A new token; the only time its secret is known.
#[derive(Debug)]
pub struct IssuedAccessToken {
    /// The token without its secret.
    pub token: AccessToken,
    /// The text that machines send.
    pub secret: Zeroizing<String>,
}

/// Why a token was not made.
#[derive(Debug, thiserror::Error)]
pub enum AccessTokenError {
    /// The name is empty, too long or has more than one line.
    #[error(transparent)]
    Name(#[from] PeopleError),
    /// No token is an owner, and none has a higher role than its maker.
    #[error("the role is higher than {0}, the highest that this maker's tokens may have")]
    RoleTooHigh(Role),
    /// In the past, or later than `access_tokens.max_days` from now.
    #[error("the end of a token is in the future and at most {0} days from now")]
    Expiry(u32),
    /// The workspace has `access_tokens.max_per_workspace`.
    #[error("the workspace has {0} access tokens, the most that it may have")]
    TooMany(u32),
    /// The maker is no member of the workspace, or is disabled.
    #[error("the person is not a member of the workspace, or is disabled")]
    NotAMember,
    /// The database cannot be asked.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Identity {
    /// Makes a token. Only a hash of its secret is stored.
    ///
    /// # Errors
    /// See [`AccessTokenError`]; nothing was made.
    pub async fn create_access_token(
        &self,
        new: NewAccessToken,
    ) -> Result<IssuedAccessToken, AccessTokenError> {
        let token = self.checked_token(new)?;
        let secret = token_text::random();
        let hash = token_text::hash_of(&secret);
        let hash = hash.unwrap_or_else(|| unreachable!("a new token has the form of one"));
        let mut tx = self.0.store.begin(Access::WriteLocked).await?;
        // Waits for who disables the maker or removes the membership.
        users::hold(&mut tx, token.user).await.map_err(not_a_member)?;
        let own = memberships::lock_role(&mut tx, token.workspace, token.user).await?;
        let most = own.ok_or(AccessTokenError::NotAMember)?.min(Role::Admin);
        if token.role > most {
            return Err(AccessTokenError::RoleTooHigh(most));
        }
        self.make_room(&mut tx, &token).await?;
        access_tokens::insert(&mut tx, &token, &hash).await?;
        tx.commit().await?;
        log_created(&token);
        Ok(IssuedAccessToken { token, secret })
    }

    /// Drops tokens that are no longer listed, then counts the others.
    async fn make_room(&self, tx: &mut Tx, new: &AccessToken) -> Result<(), AccessTokenError> {
        let most = self.0.settings.access_tokens.max_per_workspace;
        let expired = new.created_at.plus_ms(-LIST_EXPIRED_MS);
        access_tokens::sweep(tx, new.workspace, expired).await?;
        if access_tokens::count(tx, new.workspace).await? >= i64::from(most) {
            return Err(AccessTokenError::TooMany(most));
        }
        Ok(())
    }

    fn checked_token(&self, new: NewAccessToken) -> Result<AccessToken, AccessTokenError> {
        let now = self.0.clock.now();
        let max_days = self.0.settings.access_tokens.max_days;
        let last = now.plus_ms(i64::from(max_days) * DAY_MS);
        if new.expires_at <= now || new.expires_at > last {
            return Err(AccessTokenError::Expiry(max_days));
        }
        Ok(AccessToken {
            id: AccessTokenId::new(),
            workspace: new.workspace,
            user: new.user,
            name: checked_name(&new.name)?,
            role: new.role,
            created_at: now,
            expires_at: new.expires_at,
            last_used_at: None,
        })
    }

    /// One page of a workspace's tokens, newest first, and the next page's
    /// cursor. Those that expired within the last 30 days are included.
    ///
    /// # Errors
    /// [`store::Error::InvalidCursor`] for a cursor of another list.
    pub async fn access_tokens_of(
        &self,
        workspace: WorkspaceId,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<AccessToken>, Option<String>), store::Error> {
        let key = self.0.keys.derive("query cursor");
        let mut reader = self.0.store.reader().await?;
        let page = access_tokens::page(&mut reader, workspace, cursor, limit, &key).await?;
        reader.release();
        Ok(page)
    }

    /// Revokes a token on behalf of a person, or of an operator; false if the
    /// workspace has no such token. Other nodes follow within
    /// `session.cache_ms`.
    ///
    /// # Errors
    /// The store's.
    pub async fn revoke_access_token(
        &self,
        workspace: WorkspaceId,
        id: AccessTokenId,
        by: Option<UserId>,
    ) -> Result<bool, store::Error> {
        let mut writer = self.0.store.writer().await?;
        let revoked = access_tokens::delete(&mut writer, workspace, id).await?;
        writer.release();
        let Some(hash) = revoked else { return Ok(false) };
        self.0.tokens.invalidate(&hash);
        tracing::info!(
            target: "security",
            event = "access_token_revoked",
            workspace.id = %workspace,
            access_token.id = %id,
            user.id = by.map(|user| user.to_string()),
            "access token revoked"
        );
        Ok(true)
    }

    /// The principal of a token that was recognized within the cache's time.
    /// Costs no database query.
    #[must_use]
    pub fn remembered_token(&self, text: &str) -> Option<TokenPrincipal> {
        let now = self.0.clock.now();
        let known = self.0.tokens.get(&token_text::hash_of(text)?, now)?;
        (known.token.expires_at > now).then_some(known)
    }

    /// Whether the database would be asked for a token that was not recognized
    /// here for a while, if it ever was.
    #[must_use]
    pub fn is_unknown_token(&self, text: &str) -> bool {
        token_text::hash_of(text).is_some_and(|hash| !self.is_recognised(&hash))
    }

    /// The principal of a valid token. Costs no database query for a text that
    /// has not the form of a token, and within the cache's time. Notes the use,
    /// at most once a minute.
    ///
    /// # Errors
    /// The store's.
    pub async fn authenticate_token(
        &self,
        text: &str,
    ) -> Result<Option<TokenPrincipal>, store::Error> {
        let Some(hash) = token_text::hash_of(text) else { return Ok(None) };
        if let Some(principal) = self.remembered_token(text) {
            return Ok(Some(principal));
        }
        let found = self.find_token(hash).await?;
        self.recognise(hash, found.is_some());
        Ok(found)
    }

    async fn find_token(&self, hash: TokenHash) -> Result<Option<TokenPrincipal>, store::Error> {
        let inner = &*self.0;
        let now = inner.clock.now();
        let ticket = inner.tokens.ticket();
        let mut reader = inner.store.reader().await?;
        let found = access_tokens::find(&mut reader, &hash).await?;
        reader.release();
        let Some((token, user)) = found.filter(|(token, _)| token.expires_at > now) else {
            return Ok(None);
        };
        if token.last_used_at.is_none_or(|last| now.ms_since(last) >= NOTE_USE_MS) {
            self.note_use(UsedCredential::Token(token.id), now, NOTE_USE_MS).await;
        }
        let principal = TokenPrincipal { user: Arc::new(user), token: Arc::new(token) };
        inner.tokens.put(ticket, hash, principal.clone(), now);
        Ok(Some(principal))
    }
}

fn not_a_member(error: store::Error) -> AccessTokenError {
    match error {
        store::Error::NotFound => AccessTokenError::NotAMember,
        other => other.into(),
    }
}

fn log_created(token: &AccessToken) {
    tracing::info!(
        target: "security",
        event = "access_token_created",
        workspace.id = %token.workspace,
        access_token.id = %token.id,
        user.id = %token.user,
        role = %token.role,
        expires_at = token.expires_at.to_rfc3339(),
        "access token created"
    );
}
