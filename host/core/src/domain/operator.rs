//! Tokens of operators and their scopes.

use std::collections::BTreeSet;

use serde::Serialize;
use uuid::Uuid;

use super::time::Timestamp;
use super::words::words;

words! {
    /// Operations that an operators' token permits.
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TokenScope, "a scope" {
        /// Read areas, versions, the audit log and metrics.
        Read = "read",
        /// Upload versions, activate them, roll them back, remove areas.
        Deploy = "deploy",
        /// Approve the capabilities that versions request.
        Approve = "approve",
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
