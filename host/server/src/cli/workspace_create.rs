//! `assurance workspace create`.

use clap::Args;
use serde_json::json;

use super::CommonOptions;
use assurance_core::config::FlagOverrides;
use assurance_service::open::open;

#[derive(Debug, Args)]
pub(super) struct WorkspaceCreate {
    /// For people.
    #[arg(long)]
    name: String,
    /// Unique; lower-case letters, digits, hyphens; default: made of the name.
    #[arg(long)]
    slug: Option<String>,
    /// The person who becomes its owner; default: none yet, see `member add`.
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
