//! `assurance member add`.

use clap::Args;
use serde_json::json;

use super::CommonOptions;
use assurance_core::config::FlagOverrides;
use assurance_core::domain::role::Role;
use assurance_service::open::open;

#[derive(Debug, Args)]
pub(super) struct MemberAdd {
    /// Id or slug of the workspace.
    #[arg(long)]
    workspace: String,
    /// Email address of the user.
    #[arg(long, value_name = "EMAIL")]
    user: String,
    /// Role: viewer, member, admin or owner.
    #[arg(long, default_value = "member")]
    role: Role,
}

impl MemberAdd {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let config = common.load(FlagOverrides::default())?;
        let identity = open(&config).await?.identity;
        let workspace = identity.workspace(&self.workspace).await?;
        let user = identity.user_by_email(&self.user).await?;
        identity.put_member(workspace.id, user.id, self.role).await?;
        common.output().values(&[
            ("workspace_id", json!(workspace.id)),
            ("user_id", json!(user.id)),
            ("role", json!(self.role)),
        ]);
        Ok(())
    }
}
