//! `assurance workspace create`.

use clap::Args;
use serde_json::json;

use super::CommonOptions;
use assurance_core::config::FlagOverrides;
use assurance_service::open::open;

#[derive(Debug, Args)]
pub(super) struct WorkspaceCreate {
    /// Display name.
    #[arg(long)]
    name: String,
    /// Unique name for URLs: lower-case letters, digits, hyphens; default:
    /// derived from the name.
    #[arg(long)]
    slug: Option<String>,
    /// Email address of the owner; default: no owner yet (see `member add`).
    #[arg(long, value_name = "EMAIL")]
    owner: Option<String>,
}

impl WorkspaceCreate {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let config = common.load(FlagOverrides::default())?;
        let identity = open(&config).await?.identity;
        let owner = match &self.owner {
            Some(email) => Some(identity.user_by_email(email).await?.id),
            None => None,
        };
        let made = identity.create_workspace(owner, &self.name, self.slug.as_deref()).await?;
        common.output().values(&[("id", json!(made.id)), ("slug", json!(made.slug))]);
        Ok(())
    }
}
