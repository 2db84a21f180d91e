//! The credential of a request (a session or an access token) and its rights in
//! a workspace.

use super::{IdentityService, SessionPrincipal, TokenPrincipal};
use assurance_core::domain::id::{AccessTokenId, SessionId, WorkspaceId};
use assurance_core::domain::people::{Membership, User};
use assurance_store as store;

/// Valid session or access token of a request, with its user. Cheap to clone.
#[derive(Clone, Debug)]
pub enum AuthenticatedCredential {
    /// A session, from the session cookie.
    Session(SessionPrincipal),
    /// An access token, from `Authorization: Bearer`.
    Token(TokenPrincipal),
}

impl AuthenticatedCredential {
    /// Returns the acting user; for an access token, its maker.
    #[must_use]
    pub fn user(&self) -> &User {
        match self {
            Self::Session(principal) => &principal.user,
            Self::Token(principal) => &principal.user,
        }
    }

    /// Returns the session with its person; `None` for an access token.
    #[must_use]
    pub fn session(&self) -> Option<&SessionPrincipal> {
        match self {
            Self::Session(principal) => Some(principal),
            Self::Token(_) => None,
        }
    }

    /// Returns the session's id; `None` for an access token.
    #[must_use]
    pub fn session_id(&self) -> Option<SessionId> {
        self.session().map(|principal| principal.session.id)
    }

    /// Returns the access token's id; `None` for a session.
    #[must_use]
    pub fn token_id(&self) -> Option<AccessTokenId> {
        match self {
            Self::Session(_) => None,
            Self::Token(principal) => Some(principal.token.id),
        }
    }
}

impl IdentityService {
    /// Returns the role and features of the credential in a workspace; `None`
    /// if it has no access. An access token gives access only to its own
    /// workspace, with its own role or its maker's current role, whichever is
    /// lower.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn membership_by(
        &self,
        credential: &AuthenticatedCredential,
        workspace: WorkspaceId,
    ) -> Result<Option<Membership>, store::Error> {
        let AuthenticatedCredential::Token(TokenPrincipal { token, .. }) = credential else {
            return self.membership(credential.user().id, workspace).await;
        };
        if token.workspace != workspace {
            return Ok(None);
        }
        let makers = self.membership(token.user, workspace).await?;
        Ok(makers.map(|makers| Membership { role: makers.role.min(token.role), ..makers }))
    }
}
