//! `assurance user reset-factor`.

use clap::Args;
use serde_json::json;

use super::CommonOptions;
use assurance_core::config::FlagOverrides;
use assurance_service::open::open;

#[derive(Debug, Args)]
pub(super) struct UserResetFactor {
    /// Email address of the user.
    #[arg(long, value_name = "EMAIL")]
    user: String,
}

impl UserResetFactor {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let config = common.load(FlagOverrides::default())?;
        let identity = open(&config).await?.identity;
        let user = identity.user_by_email(&self.user).await?;
        let (removed, ended) = identity.reset_factor(user.id).await?;
        common.output().values(&[
            ("id", json!(user.id)),
            ("email", json!(user.email)),
            ("removed", json!(removed)),
            ("ended", json!(ended)),
        ]);
        Ok(())
    }
}
