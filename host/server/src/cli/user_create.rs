//! `assurance user create`.

use clap::Args;
use serde_json::json;

use super::{CommonOptions, input};
use assurance_core::config::FlagOverrides;
use assurance_identity::NewUser;
use assurance_service::open::open;

#[derive(Debug, Args)]
pub(super) struct UserCreate {
    /// Email address, used to sign in and to send mail.
    #[arg(long)]
    email: String,
    /// Display name; default: the email address.
    #[arg(long)]
    name: Option<String>,
    /// Read the password from standard input; otherwise a random one is created
    /// and printed.
    #[arg(long)]
    password_stdin: bool,
    /// Mark the email address as verified.
    #[arg(long)]
    verified: bool,
}

impl UserCreate {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let config = common.load(FlagOverrides::default())?;
        let password = input::password(self.password_stdin)?;
        let opened = open(&config).await?;
        let wish = NewUser {
            display_name: self.name.unwrap_or_else(|| self.email.trim().to_owned()),
            email: self.email,
            password: Some(password.text.to_string()),
            email_verified: self.verified,
        };
        let user = opened.identity.create_user(wish).await?;
        let mut answer = vec![("id", json!(user.id)), ("email", json!(user.email))];
        if password.generated {
            answer.push(("password", json!(*password.text)));
        }
        common.output().values(&answer);
        Ok(())
    }
}
