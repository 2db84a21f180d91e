//! `assurance session create`.

use clap::Args;
use serde_json::json;

use super::Common;
use crate::config::Flags;
use crate::identity::SESSION_COOKIE;
use crate::open::open;

#[derive(Debug, Args)]
pub(super) struct Create {
    /// Who is signed in.
    #[arg(long, value_name = "EMAIL")]
    user: String,
    /// Shown as the session's user agent, so that its owner knows it.
    #[arg(long, default_value = "assurance session create")]
    label: String,
}

impl Create {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let config = common.load(Flags::default())?;
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
