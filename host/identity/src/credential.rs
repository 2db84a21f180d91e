//! What a request is authenticated with, and the rights that follow from it.

use super::{Identity, Principal, TokenPrincipal};
use assurance_core::domain::id::{AccessTokenId, SessionId, WorkspaceId};
use assurance_core::domain::people::{Membership, User};
use assurance_store as store;

/// A valid session or a valid access token. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Credential {
    /// The session cookie.
    Session(Principal),
    /// `Authorization: Bearer`.
    Token(TokenPrincipal),
}

impl Credential {
    /// The acting user; for a token, its maker.
    #[must_use]
    pub fn user(&self) -> &User {
        match self {
            Self::Session(principal) => &principal.user,
            Self::Token(principal) => &principal.user,
        }
    }

    /// The session, if it is one.
    #[must_use]
    pub fn session(&self) -> Option<&Principal> {
        match self {
            Self::Session(principal) => Some(principal),
            Self::Token(_) => None,
        }
    }

    /// The session's id, if it is one.
    #[must_use]
    pub fn session_id(&self) -> Option<SessionId> {
        self.session().map(|principal| principal.session.id)
    }

    /// The token's id, if it is one.
    #[must_use]
    pub fn token_id(&self) -> Option<AccessTokenId> {
        match self {
            Self::Session(_) => None,
            Self::Token(principal) => Some(principal.token.id),
        }
    }
}

impl Identity {
    /// What the credential may do in the workspace; `None` if nothing. A token
    /// opens its own workspace only, with no higher role than its own and its
    /// maker's present one.
    ///
    /// # Errors
    /// The store's.
    pub async fn membership_by(
        &self,
        credential: &Credential,
        workspace: WorkspaceId,
    ) -> Result<Option<Membership>, store::Error> {
        let Credential::Token(TokenPrincipal { token, .. }) = credential else {
            return self.membership(credential.user().id, workspace).await;
        };
        if token.workspace != workspace {
            return Ok(None);
        }
        let makers = self.membership(token.user, workspace).await?;
        Ok(makers.map(|makers| Membership { role: makers.role.min(token.role), ..makers }))
    }
}
