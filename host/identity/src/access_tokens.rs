//! Creates, lists, authenticates and revokes access tokens for machines.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::backoff::DAY_MS;
use super::people::checked_name;
use super::uses::UsedCredential;
use super::{IdentityService, PeopleError, token_text};
use assurance_core::domain::id::{AccessTokenId, UserId, WorkspaceId};
use assurance_core::domain::people::{AccessToken, User};
use assurance_core::domain::role::Role;
use assurance_core::domain::time::Timestamp;
use assurance_store::sessions::TokenHash;
use assurance_store::{self as store, TransactionAccess, Tx, access_tokens, memberships, users};

/// Minimum interval between two recorded uses of an access token, in
/// milliseconds.
const NOTE_USE_MS: i64 = 60_000;
/// Time for which an expired access token is still listed, in milliseconds.
const LIST_EXPIRED_MS: i64 = 30 * DAY_MS;

/// The principal of a request with an access token: the token and its maker.
/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct TokenPrincipal {
    /// Maker of the token, whose account is not disabled.
    pub user: Arc<User>,
    /// The token without its secret; not expired when it was authenticated.
    pub token: Arc<AccessToken>,
}

/// Request to create an access token.
#[derive(Clone, Debug)]
pub struct NewAccessToken {
    /// Workspace that the token gives access to.
    pub workspace: WorkspaceId,
    /// Maker of the token, a member of the workspace.
    pub user: UserId,
    /// Display name of the access token, 1 to 120 characters on one line.
    pub name: String,
    /// Highest role of requests with the token: at most admin, and at most the
    /// maker's role.
    pub role: Role,
    /// Time from which requests with the access token are refused.
    pub expires_at: Timestamp,
}

/// A new access token with its secret, which is not stored and cannot be read
/// again.
#[derive(Debug)]
pub struct IssuedAccessToken {
    /// Data of the access token, without its secret.
    pub token: AccessToken,
    /// Secret text of the access token, which machines send in
    /// `Authorization: Bearer`.
    pub secret: Zeroizing<String>,
}

/// Reason why an access token was not created.
#[derive(Debug, thiserror::Error)]
pub enum CreateAccessTokenError {
    /// The access token's name is empty, too long or has more than one line.
    #[error(transparent)]
    Name(#[from] PeopleError),
    /// The access token's role is higher than admin, or than its maker's role.
    /// Contains the highest role that is allowed.
    #[error("the role is higher than {0}, the highest that this maker's tokens may have")]
    RoleTooHigh(Role),
    /// The access token's expiry time is in the past, or later than
    /// `access_tokens.max_days` from now. Contains that number of days.
    #[error("a token must expire in the future, at most {0} days from now")]
    Expiry(u32),
    /// The workspace has `access_tokens.max_per_workspace` tokens, the maximum.
    /// Contains that number.
    #[error("the workspace has {0} access tokens, which is the limit; revoke one first")]
    TooMany(u32),
    /// The maker of the access token is not a member of the workspace, or is
    /// disabled.
    #[error("the person is not a member of the workspace, or is disabled")]
    NotAMember,
    /// An error of the store, such as an unavailable database.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl IdentityService {
    /// Creates an access token. Only a hash of its secret is stored.
    ///
    /// # Errors
    /// See [`CreateAccessTokenError`]; no token was created.
    pub async fn create_access_token(
        &self,
        new: NewAccessToken,
    ) -> Result<IssuedAccessToken, CreateAccessTokenError> {
        let token = self.checked_token(new)?;
        let secret = token_text::random();
        let hash = token_text::hash_of(&secret);
        let hash = hash.unwrap_or_else(|| unreachable!("a new token has the form of a token"));
        let mut tx = self.0.store.begin(TransactionAccess::WriteLocked).await?;
        // Waits for transactions that disable the maker or remove the
        // membership.
        users::hold(&mut tx, token.user).await.map_err(not_a_member)?;
        let own = memberships::lock_role(&mut tx, token.workspace, token.user).await?;
        let most = own.ok_or(CreateAccessTokenError::NotAMember)?.min(Role::Admin);
        if token.role > most {
            return Err(CreateAccessTokenError::RoleTooHigh(most));
        }
        self.make_room(&mut tx, &token).await?;
        access_tokens::insert(&mut tx, &token, &hash).await?;
        tx.commit().await?;
        log_created(&token);
        Ok(IssuedAccessToken { token, secret })
    }

    /// Deletes the workspace's access tokens that expired more than 30 days
    /// ago. Returns an error if it still has the maximum number of tokens.
    async fn make_room(
        &self,
        tx: &mut Tx,
        new: &AccessToken,
    ) -> Result<(), CreateAccessTokenError> {
        let most = self.0.settings.access_tokens.max_per_workspace;
        let expired = new.created_at.plus_ms(-LIST_EXPIRED_MS);
        access_tokens::sweep(tx, new.workspace, expired).await?;
        if access_tokens::count(tx, new.workspace).await? >= i64::from(most) {
            return Err(CreateAccessTokenError::TooMany(most));
        }
        Ok(())
    }

    fn checked_token(&self, new: NewAccessToken) -> Result<AccessToken, CreateAccessTokenError> {
        let now = self.0.clock.now();
        let max_days = self.0.settings.access_tokens.max_days;
        let last = now.plus_ms(i64::from(max_days) * DAY_MS);
        if new.expires_at <= now || new.expires_at > last {
            return Err(CreateAccessTokenError::Expiry(max_days));
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

    /// Returns one page of a workspace's access tokens, newest first, and the
    /// next page's cursor. Includes expired tokens, which are deleted when a
    /// token is created 30 days after their expiry or later.
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
        let store = &self.0.store;
        store.read(async |c| access_tokens::page(c, workspace, cursor, limit, &key).await).await
    }

    /// Revokes an access token on behalf of a person, or of an operator
    /// (`None`). Returns false if the workspace has no such token. Other nodes
    /// refuse the token within `session.cache_ms`.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn revoke_access_token(
        &self,
        workspace: WorkspaceId,
        id: AccessTokenId,
        by: Option<UserId>,
    ) -> Result<bool, store::Error> {
        let revoked = self.0.store.write(async |c| access_tokens::delete(c, workspace, id).await);
        let Some(hash) = revoked.await? else { return Ok(false) };
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

    /// Returns the principal of an access token that this node authenticated
    /// within `session.cache_ms`; `None` for any other. Sends no query to the
    /// database.
    #[must_use]
    pub fn remembered_token(&self, text: &str) -> Option<TokenPrincipal> {
        let now = self.0.clock.now();
        let known = self.0.tokens.get(&token_text::hash_of(text)?, now)?;
        (known.token.expires_at > now).then_some(known)
    }

    /// Returns whether this node has not recognized the access token within the
    /// last 15 minutes; false for a text that is not a token.
    #[must_use]
    pub fn is_unknown_token(&self, text: &str) -> bool {
        token_text::hash_of(text).is_some_and(|hash| !self.is_recognised(&hash))
    }

    /// Returns the principal of a valid access token, from the cache or the
    /// database; `None` if the token is not valid. Sends no query for a text
    /// that is not a token. Records the use, at most once per minute.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn authenticate_token(
        &self,
        text: &str,
    ) -> Result<Option<TokenPrincipal>, store::Error> {
        let Some(hash) = token_text::hash_of(text) else { return Ok(None) };
        if let Some(principal) = self.remembered_token(text) {
            return Ok(Some(principal));
        }
        let found = self.find_token(hash).await?;
        self.recognize(hash, found.is_some());
        Ok(found)
    }

    async fn find_token(&self, hash: TokenHash) -> Result<Option<TokenPrincipal>, store::Error> {
        let inner = &*self.0;
        let now = inner.clock.now();
        let ticket = inner.tokens.ticket();
        let found = inner.store.read(async |c| access_tokens::find(c, &hash).await).await?;
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

fn not_a_member(error: store::Error) -> CreateAccessTokenError {
    match error {
        store::Error::NotFound => CreateAccessTokenError::NotAMember,
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
