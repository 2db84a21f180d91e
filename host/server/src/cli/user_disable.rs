//! `assurance user disable` and `assurance user enable`.

use clap::Args;
use serde_json::json;

use super::CommonOptions;
use assurance_core::config::FlagOverrides;
use assurance_service::open::open;

#[derive(Debug, Args)]
pub(super) struct UserDisable {
    /// Email address of the user.
    #[arg(long, value_name = "EMAIL")]
    user: String,
}

#[derive(Debug, Args)]
pub(super) struct UserEnable {
    /// Email address of the user.
    #[arg(long, value_name = "EMAIL")]
    user: String,
}

impl UserDisable {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let config = common.load(FlagOverrides::default())?;
        let identity = open(&config).await?.identity;
        let user = identity.user_by_email(&self.user).await?;
        let ended = identity.disable(user.id).await?;
        common.output().values(&[
            ("id", json!(user.id)),
            ("email", json!(user.email)),
            ("disabled", json!(true)),
            ("ended", json!(ended)),
        ]);
        Ok(())
    }
}

impl UserEnable {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let config = common.load(FlagOverrides::default())?;
        let identity = open(&config).await?.identity;
        let user = identity.user_by_email(&self.user).await?;
        identity.enable(user.id).await?;
        common.output().values(&[
            ("id", json!(user.id)),
            ("email", json!(user.email)),
            ("disabled", json!(false)),
        ]);
        Ok(())
    }
}
