//! `assurance member add`.

use clap::{Args, Subcommand};
use serde_json::json;

use super::Common;
use crate::config::Flags;
use crate::domain::role::Role;
use crate::open::open;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a person a member of a workspace, or change a member's role.
    Add(Add),
}

#[derive(Debug, Args)]
pub(super) struct Add {
    /// Id or slug of the workspace.
    #[arg(long)]
    workspace: String,
    /// Who.
    #[arg(long, value_name = "EMAIL")]
    user: String,
    /// viewer, member, admin or owner.
    #[arg(long, default_value = "member")]
    role: Role,
}

impl Command {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let Self::Add(add) = self;
        let config = common.load(Flags::default())?;
        let identity = open(&config).await?.identity;
        let workspace = identity.workspace(&add.workspace).await?;
        let user = identity.user_by_email(&add.user).await?;
        identity.put_member(workspace.id, user.id, add.role).await?;
        common.output().values(&[
            ("workspace_id", json!(workspace.id)),
            ("user_id", json!(user.id)),
            ("role", json!(add.role)),
        ]);
        Ok(())
    }
}
