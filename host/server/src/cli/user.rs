//! `assurance user …`.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{CommonOptions, input};
use assurance_core::config::Config;
use assurance_core::domain::people::User;
use assurance_identity::{IdentityService, NewUser, PeopleError};
use assurance_service::open::open;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a user who can sign in.
    Create {
        /// Email address, used to sign in and to send mail.
        #[arg(long)]
        email: String,
        /// Display name; default: the email address.
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        password: PasswordArgs,
        /// Mark the email address as verified.
        #[arg(long)]
        verified: bool,
    },
    /// Replace a user's password and end all sessions of the user.
    Password {
        #[command(flatten)]
        user: UserArgs,
        #[command(flatten)]
        password: PasswordArgs,
    },
    /// Prevent a user from signing in and end all sessions of the user; a
    /// running service applies it within a second.
    Disable(UserArgs),
    /// Allow a disabled user to sign in again.
    Enable(UserArgs),
    /// Remove a user's second factor and recovery codes, and end all sessions
    /// of the user.
    ResetFactor(UserArgs),
}

#[derive(Debug, Args)]
pub(super) struct UserArgs {
    /// Email address of the user.
    #[arg(long = "user", value_name = "EMAIL")]
    email: String,
}

impl UserArgs {
    pub(super) async fn find(&self, identity: &IdentityService) -> Result<User, PeopleError> {
        identity.user_by_email(&self.email).await
    }
}

#[derive(Debug, Args)]
pub(super) struct PasswordArgs {
    /// Read the password from standard input; otherwise a random one is created
    /// and printed.
    #[arg(long)]
    password_stdin: bool,
}

impl Command {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let config = common.load()?;
        let (user, changed) = match self {
            Self::Create { email, name, password, verified } => {
                let password = input::password(password.password_stdin)?;
                let new_user = NewUser {
                    display_name: name.unwrap_or_else(|| email.trim().to_owned()),
                    email,
                    password: Some(password.text.to_string()),
                    email_verified: verified,
                };
                let identity = open(&config).await?.identity;
                (identity.create_user(new_user).await?, password.output_values())
            }
            Self::Password { user, password } => {
                let password = input::password(password.password_stdin)?;
                let (identity, user) = open_user(&config, &user).await?;
                identity.set_password(user.id, &password.text).await?;
                (user, password.output_values())
            }
            Self::Disable(user) => {
                let (identity, user) = open_user(&config, &user).await?;
                let ended = identity.disable(user.id).await?;
                (user, vec![("disabled", json!(true)), ("ended", json!(ended))])
            }
            Self::Enable(user) => {
                let (identity, user) = open_user(&config, &user).await?;
                identity.enable(user.id).await?;
                (user, vec![("disabled", json!(false))])
            }
            Self::ResetFactor(user) => {
                let (identity, user) = open_user(&config, &user).await?;
                let (removed, ended) = identity.reset_factor(user.id).await?;
                (user, vec![("removed", json!(removed)), ("ended", json!(ended))])
            }
        };
        let mut values = vec![("id", json!(user.id)), ("email", json!(user.email))];
        values.extend(changed);
        common.print_values(&values);
        Ok(())
    }
}

/// Opens the installation and finds the user.
async fn open_user(config: &Config, user: &UserArgs) -> anyhow::Result<(IdentityService, User)> {
    let identity = open(config).await?.identity;
    let user = user.find(&identity).await?;
    Ok((identity, user))
}
