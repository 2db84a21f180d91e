//! Roles of workspace members.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::words;

words! {
    /// Role of a workspace's member. Each role includes the permissions of
    /// those before it.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Role, "a role" {
        /// May read the workspace's data.
        Viewer = "viewer",
        /// May also write the workspace's data.
        Member = "member",
        /// May also configure the workspace.
        Admin = "admin",
        /// May also add and remove other owners.
        Owner = "owner",
    }
}
