//! `assurance member remove`.

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use super::CommonOptions;
use assurance_core::config::FlagOverrides;
use assurance_service::open::open;

#[derive(Debug, Args)]
pub(super) struct MemberRemove {
    /// Id or slug of the workspace.
    #[arg(long)]
    workspace: String,
    /// Email address of the member.
    #[arg(long, value_name = "EMAIL")]
    user: String,
}

impl MemberRemove {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let config = common.load(FlagOverrides::default())?;
        let identity = open(&config).await?.identity;
        let workspace = identity.workspace(&self.workspace).await?;
        let user = identity.user_by_email(&self.user).await?;
        let removed = identity.remove_member(workspace.id, user.id).await;
        removed.with_context(|| format!("{} in workspace {}", user.email, workspace.slug))?;
        common
            .output()
            .values(&[("workspace_id", json!(workspace.id)), ("user_id", json!(user.id))]);
        Ok(())
    }
}
