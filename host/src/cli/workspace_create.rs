//! `assurance workspace create`.

use clap::Args;
use serde_json::json;

use super::Common;
use crate::config::Flags;
use crate::open::open;

#[derive(Debug, Args)]
pub(super) struct Create {
    /// For people.
    #[arg(long)]
    name: String,
    /// Unique; lower-case letters, digits, hyphens; default: made of the name.
    #[arg(long)]
    slug: Option<String>,
    /// E-mail of the person who becomes its owner.
    #[arg(long, value_name = "EMAIL")]
    owner: String,
}

impl Create {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let config = common.load(Flags::default())?;
        let identity = open(&config).await?.identity;
        let owner = identity.user_by_email(&self.owner).await?;
        let made = identity.create_workspace(owner.id, &self.name, self.slug.as_deref()).await?;
        common.output().values(&[
            ("workspace_id", json!(made.id)),
            ("slug", json!(made.slug)),
            ("owner", json!(owner.email)),
        ]);
        Ok(())
    }
}
