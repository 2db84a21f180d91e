//! `assurance session revoke`.

use clap::Args;
use serde_json::json;

use super::Common;
use crate::config::Flags;
use crate::domain::id::SessionId;
use crate::open::open;

#[derive(Debug, Args)]
pub(super) struct Revoke {
    /// Whose sessions.
    #[arg(long, value_name = "EMAIL")]
    user: String,
    /// Only this one; default: all of them.
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
}

impl Revoke {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let config = common.load(Flags::default())?;
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
