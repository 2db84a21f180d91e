//! `assurance session revoke`.

use clap::Args;
use serde_json::json;

use super::CommonOptions;
use assurance_core::config::FlagOverrides;
use assurance_core::domain::id::SessionId;
use assurance_service::open::open;

#[derive(Debug, Args)]
pub(super) struct SessionRevoke {
    /// Email address of the user.
    #[arg(long, value_name = "EMAIL")]
    user: String,
    /// Id of the session to end; default: all sessions.
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
}

impl SessionRevoke {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let config = common.load(FlagOverrides::default())?;
        let identity = open(&config).await?.identity;
        let user = identity.user_by_email(&self.user).await?;
        let ended = match self.session {
            None => identity.revoke_all(user.id).await?,
            Some(id) if identity.revoke(user.id, id).await? => 1,
            Some(id) => {
                anyhow::bail!("{} has no session {id}; it may have ended already", user.email)
            }
        };
        common.output().values(&[("email", json!(user.email)), ("ended", json!(ended))]);
        Ok(())
    }
}
