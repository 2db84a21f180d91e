//! People, what they belong to, and how they are signed in.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use super::id::{SessionId, UserId, WorkspaceId};
use super::role::Role;
use super::time::Timestamp;

/// A person who can sign in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct User {
    /// Never reused.
    pub id: UserId,
    /// Lower case, unique.
    pub email: String,
    /// As the person wants to be called.
    pub display_name: String,
    /// The person has shown that mail to the address arrives.
    pub email_verified: bool,
}

/// One signed-in session, without the secret that proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Names it for its owner; tells nothing of the cookie.
    pub id: SessionId,
    /// When the person signed in.
    pub created_at: Timestamp,
    /// The last use, kept to the minute.
    pub last_seen_at: Timestamp,
    /// When it ends however much it is used.
    pub expires_at: Timestamp,
    /// Where it was made from.
    pub ip: Option<String>,
    /// What it was made with.
    pub user_agent: Option<String>,
}

impl Session {
    /// When it ends if it is not used again.
    #[must_use]
    pub fn ends_at(&self, idle_ms: i64) -> Timestamp {
        self.expires_at.min(self.last_seen_at.plus_ms(idle_ms))
    }
}

/// What a person may do in a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Decides which operations.
    pub role: Role,
    /// The workspace's feature flags that are off; every other is on.
    pub features_off: Arc<BTreeSet<String>>,
}

impl Membership {
    /// Is this feature on in the workspace?
    #[must_use]
    pub fn has_feature(&self, flag: &str) -> bool {
        !self.features_off.contains(flag)
    }
}

/// A person as the other members see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Who.
    pub user: UserId,
    /// Lower case.
    pub email: String,
    /// As the person wants to be called.
    pub display_name: String,
    /// In this workspace.
    pub role: Role,
}

/// A customer workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Workspace {
    /// Never reused.
    pub id: WorkspaceId,
    /// For people.
    pub name: String,
    /// Unique; lower case letters, digits and hyphens.
    pub slug: String,
    /// When it was made.
    pub created_at: Timestamp,
}
