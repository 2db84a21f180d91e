//! `assurance session create`.

use clap::Args;
use serde_json::json;

use super::CommonOptions;
use assurance_core::config::FlagOverrides;
use assurance_identity::SESSION_COOKIE;
use assurance_service::open::open;

#[derive(Debug, Args)]
pub(super) struct SessionCreate {
    /// Email address of the user.
    #[arg(long, value_name = "EMAIL")]
    user: String,
    /// User agent that the user's list of sessions shows for this session.
    #[arg(long, default_value = "assurance session create")]
    label: String,
}

impl SessionCreate {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let config = common.load(FlagOverrides::default())?;
        let identity = open(&config).await?.identity;
        let user = identity.user_by_email(&self.user).await?;
        let made = identity.issue(user, &self.label).await?;
        let session = &made.principal.session;
        common.output().values(&[
            ("id", json!(session.id)),
            ("user_id", json!(made.principal.user.id)),
            ("session", json!(made.cookie)),
            ("cookie", json!(format!("{SESSION_COOKIE}={}", made.cookie))),
            ("csrf_token", json!(made.csrf_token)),
            ("expires_at", json!(session.expires_at)),
        ]);
        Ok(())
    }
}
