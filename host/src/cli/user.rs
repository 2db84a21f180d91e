//! `assurance user …`.

use clap::Subcommand;

use super::Common;
use super::user_create::Create;
use super::user_password::SetPassword;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a person who can sign in.
    Create(Create),
    /// Replace a person's password and end all their sessions.
    Password(SetPassword),
}

impl Command {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        match self {
            Self::Create(command) => command.run(common).await,
            Self::Password(command) => command.run(common).await,
        }
    }
}
