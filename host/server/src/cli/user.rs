//! `assurance user …`.

use clap::Subcommand;

use super::CommonOptions;
use super::user_create::UserCreate;
use super::user_disable::{UserDisable, UserEnable};
use super::user_password::UserSetPassword;
use super::user_reset_factor::UserResetFactor;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a user who can sign in.
    Create(UserCreate),
    /// Replace a user's password and end all sessions of the user.
    Password(UserSetPassword),
    /// Prevent a user from signing in and end all sessions of the user; a
    /// running service applies it within a second.
    Disable(UserDisable),
    /// Allow a disabled user to sign in again.
    Enable(UserEnable),
    /// Remove a user's second factor and recovery codes, and end all sessions
    /// of the user.
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
