//! Users, sessions, memberships and workspaces.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use super::id::{AccessTokenId, SessionId, UserId, WorkspaceId};
use super::role::Role;
use super::time::Timestamp;

/// A person who can sign in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct User {
    /// Id of the user; never reused.
    pub id: UserId,
    /// Email address in lower case, unique among all users.
    pub email: String,
    /// Name that the person chose for display.
    pub display_name: String,
    /// Whether the person has confirmed the address by a mail.
    pub email_verified: bool,
}

/// A session of a signed-in person, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Public id of the session, shown to its owner. The cookie cannot be
    /// derived from it.
    pub id: SessionId,
    /// Time at which the session was created.
    pub created_at: Timestamp,
    /// Time of the last request in the session, to the minute.
    pub last_seen_at: Timestamp,
    /// Time at which the session ends, even if it is used.
    pub expires_at: Timestamp,
    /// IP address of the sign-in request; `None` if an operator created the
    /// session.
    pub ip: Option<String>,
    /// `User-Agent` of the sign-in request, or the label of a session that an
    /// operator created.
    pub user_agent: Option<String>,
}

impl Session {
    /// Returns the time at which the session ends if it is not used again.
    #[must_use]
    pub fn ends_at(&self, idle_ms: i64) -> Timestamp {
        self.expires_at.min(self.last_seen_at.plus_ms(idle_ms))
    }
}

/// A credential of a machine for one workspace, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessToken {
    /// Public id of the access token, used to revoke it. The secret cannot be
    /// derived from it.
    pub id: AccessTokenId,
    /// The only workspace that the token gives access to.
    pub workspace: WorkspaceId,
    /// Person who made the access token. Requests with the token act as this
    /// person.
    pub user: UserId,
    /// Display name of the access token, chosen by its maker.
    pub name: String,
    /// Highest role of a request with the access token. If the maker's role is
    /// lower, the maker's role applies.
    pub role: Role,
    /// Time at which the token was created.
    pub created_at: Timestamp,
    /// Time from which the access token is refused, even if it is used.
    pub expires_at: Timestamp,
    /// Time of the last request with the access token, to the minute; `None` if
    /// there was none.
    pub last_used_at: Option<Timestamp>,
}

/// Role of a person in a workspace, and the workspace's features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Role of the member; it determines the permitted operations.
    pub role: Role,
    /// The workspace's feature flags that are off; every other is on.
    pub features_off: Arc<BTreeSet<String>>,
}

impl Membership {
    /// Returns whether this feature is on in the workspace.
    #[must_use]
    pub fn has_feature(&self, flag: &str) -> bool {
        !self.features_off.contains(flag)
    }
}

/// A member of a workspace, as the other members see the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Id of the member.
    pub user: UserId,
    /// Email address of the member, in lower case.
    pub email: String,
    /// Name that the person chose for display.
    pub display_name: String,
    /// Role of the member in this workspace.
    pub role: Role,
}

/// A customer's workspace: the boundary between tenants' data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Workspace {
    /// Id of the workspace; never reused.
    pub id: WorkspaceId,
    /// Name of the workspace for display.
    pub name: String,
    /// Unique name of the workspace in URLs; lower-case letters, digits and
    /// hyphens.
    pub slug: String,
    /// Time at which the workspace was created.
    pub created_at: Timestamp,
}
