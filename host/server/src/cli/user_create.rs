//! `assurance user create`.

use clap::Args;
use serde_json::json;

use super::{CommonOptions, input};
use assurance_core::config::FlagOverrides;
use assurance_identity::NewUser;
use assurance_service::open::open;

#[derive(Debug, Args)]
pub(super) struct UserCreate {
    /// Where the person is reached, and signs in with.
    #[arg(long)]
    email: String,
    /// As the person wants to be called; default: the e-mail.
    #[arg(long)]
    name: Option<String>,
    /// Read the password from standard input; else one is made and printed.
    #[arg(long)]
    password_stdin: bool,
    /// Mail to the address is known to arrive.
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
