//! `assurance token …`.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::json;

use super::{Common, output};
use crate::app::operators;
use crate::config::Flags;
use crate::domain::operator::Scope;
use crate::open::open;
use crate::store;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a token for an operator or a pipeline; prints it once.
    Create(Create),
    /// All tokens, revoked ones too.
    List,
    /// Make a token open nothing any more.
    Revoke(Revoke),
}

#[derive(Debug, Args)]
pub(super) struct Create {
    /// What the audit log calls its holder.
    #[arg(long)]
    name: String,
    /// What it may be used for: read, deploy, approve; repeat for several.
    #[arg(long = "scope", value_name = "SCOPE", required = true)]
    scopes: Vec<Scope>,
}

#[derive(Debug, Args)]
pub(super) struct Revoke {
    /// Whose.
    #[arg(long)]
    name: String,
}

impl Command {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let opened = open(&common.load(Flags::default())?).await?;
        let (store, now) = (&opened.store, opened.clock.now());
        match self {
            Self::Create(Create { name, scopes }) => {
                let made = operators::create(store, now, &name, scopes.into_iter().collect()).await;
                let made = made.map_err(|error| match error {
                    store::Error::AlreadyExists => anyhow::anyhow!(
                        "there is a token {name:?}; revoke it first, or choose another name"
                    ),
                    other => other.into(),
                })?;
                common.output().values(&[
                    ("id", json!(made.token.id)),
                    ("name", json!(made.token.name)),
                    ("scopes", json!(made.token.scopes)),
                    ("token", json!(*made.secret)),
                ]);
            }
            Self::List => {
                let tokens = operators::list(store).await?;
                output::line(serde_json::to_string_pretty(&json!({"tokens": tokens}))?);
            }
            Self::Revoke(Revoke { name }) => {
                let revoked = operators::revoke(store, now, &name).await;
                revoked.with_context(|| format!("token {name:?}"))?;
                common.output().values(&[("revoked", json!(name))]);
            }
        }
        Ok(())
    }
}
