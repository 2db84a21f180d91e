//! `assurance user password`.

use clap::Args;
use serde_json::json;

use super::{CommonOptions, input};
use assurance_core::config::FlagOverrides;
use assurance_service::open::open;

#[derive(Debug, Args)]
pub(super) struct UserSetPassword {
    /// Email address of the user.
    #[arg(long, value_name = "EMAIL")]
    user: String,
    /// Read the password from standard input; otherwise a random one is created
    /// and printed.
    #[arg(long)]
    password_stdin: bool,
}

impl UserSetPassword {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let config = common.load(FlagOverrides::default())?;
        let password = input::password(self.password_stdin)?;
        let identity = open(&config).await?.identity;
        let user = identity.user_by_email(&self.user).await?;
        identity.set_password(user.id, &password.text).await?;
        let mut answer = vec![("id", json!(user.id)), ("email", json!(user.email))];
        if password.generated {
            answer.push(("password", json!(*password.text)));
        }
        common.output().values(&answer);
        Ok(())
    }
}
