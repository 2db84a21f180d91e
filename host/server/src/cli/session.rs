//! `assurance session …`.

use clap::Subcommand;
use serde_json::json;

use super::CommonOptions;
use super::user::UserArgs;
use assurance_core::domain::id::SessionId;
use assurance_identity::SESSION_COOKIE;
use assurance_service::open::open;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a session for a user without a password; prints the cookie once.
    Create {
        #[command(flatten)]
        user: UserArgs,
        /// User agent that the user's list of sessions shows for this session.
        #[arg(long, default_value = "assurance session create")]
        label: String,
    },
    /// End one or all sessions of a user; a running service applies it within a second.
    Revoke {
        #[command(flatten)]
        user: UserArgs,
        /// Id of the session to end; default: all sessions.
        #[arg(long, value_name = "ID")]
        session: Option<SessionId>,
    },
}

impl Command {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let identity = open(&common.load()?).await?.identity;
        match self {
            Self::Create { user, label } => {
                let user = user.find(&identity).await?;
                let made = identity.issue(user, &label).await?;
                let session = &made.principal.session;
                common.print_values(&[
                    ("id", json!(session.id)),
                    ("user_id", json!(made.principal.user.id)),
                    ("session", json!(made.cookie)),
                    ("cookie", json!(format!("{SESSION_COOKIE}={}", made.cookie))),
                    ("csrf_token", json!(made.csrf_token)),
                    ("expires_at", json!(session.expires_at)),
                ]);
            }
            Self::Revoke { user, session } => {
                let user = user.find(&identity).await?;
                let ended = match session {
                    None => identity.revoke_all(user.id).await?,
                    Some(id) if identity.revoke(user.id, id).await? => 1,
                    Some(id) => anyhow::bail!(
                        "{} has no session {id}; it may have ended already",
                        user.email
                    ),
                };
                common.print_values(&[("email", json!(user.email)), ("ended", json!(ended))]);
            }
        }
        Ok(())
    }
}
