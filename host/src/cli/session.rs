//! `assurance session …`.

use clap::Subcommand;

use super::Common;
use super::session_create::Create;
use super::session_revoke::Revoke;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Sign a person in without a password; prints the cookie once.
    Create(Create),
    /// End a person's sessions; a running service follows within a second.
    Revoke(Revoke),
}

impl Command {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        match self {
            Self::Create(command) => command.run(common).await,
            Self::Revoke(command) => command.run(common).await,
        }
    }
}
