//! Tokens of operators and their scopes.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use uuid::Uuid;

use super::time::Timestamp;

/// Operations that a token permits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenScope {
    /// Read areas, versions, the audit log and metrics.
    Read,
    /// Upload versions, activate them, roll them back, remove areas.
    Deploy,
    /// Approve the capabilities that versions request.
    Approve,
}

impl TokenScope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Read, Self::Deploy, Self::Approve];

    /// Returns the name that is stored and sent.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Deploy => "deploy",
            Self::Approve => "approve",
        }
    }
}

impl fmt::Display for TokenScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TokenScope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| format!("{text:?} is not a scope; use one of read, deploy, approve"))
    }
}

/// An operators' token without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OperatorTokenInfo {
    /// Id of the token; never reused.
    pub id: Uuid,
    /// Name of the token, which the audit log shows as the operator.
    pub name: String,
    /// Operations that the token permits.
    pub scopes: BTreeSet<TokenScope>,
    /// Time at which the token was created.
    pub created_at: Timestamp,
    /// Time at which the token was revoked; `None` while it is valid.
    pub revoked_at: Option<Timestamp>,
}
