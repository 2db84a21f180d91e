//! `assurance user …`.

use clap::Subcommand;

use super::CommonOptions;
use super::user_create::UserCreate;
use super::user_disable::{UserDisable, UserEnable};
use super::user_password::SetPassword;
use super::user_reset_factor::UserResetFactor;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a person who can sign in.
    Create(UserCreate),
    /// Replace a person's password and end all their sessions.
    Password(SetPassword),
    /// Keep a person from signing in and end all their sessions; a running
    /// service follows within a second.
    Disable(UserDisable),
    /// Let a disabled person sign in again.
    Enable(UserEnable),
    /// Remove a person's second factor with its recovery codes, and end all
    /// their sessions.
    ResetFactor(UserResetFactor),
}

impl Command {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        match self {
            Self::Create(command) => command.run(common).await,
            Self::Password(command) => command.run(common).await,
            Self::Disable(command) => command.run(common).await,
            Self::Enable(command) => command.run(common).await,
            Self::ResetFactor(command) => command.run(common).await,
        }
    }
}
