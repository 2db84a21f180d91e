//! `assurance session …`.

use clap::Subcommand;

use super::CommonOptions;
use super::session_create::SessionCreate;
use super::session_revoke::SessionRevoke;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a session for a user without a password; prints the cookie once.
    Create(SessionCreate),
    /// End a user's sessions; a running service applies it within a second.
    Revoke(SessionRevoke),
}

impl Command {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        match self {
            Self::Create(command) => command.run(common).await,
            Self::Revoke(command) => command.run(common).await,
        }
    }
}
