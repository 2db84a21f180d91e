//! `assurance session …`.

use clap::Subcommand;

use super::CommonOptions;
use super::session_create::SessionCreate;
use super::session_revoke::SessionRevoke;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Sign a person in without a password; prints the cookie once.
    Create(SessionCreate),
    /// End a person's sessions; a running service follows within a second.
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
