//! `assurance token …`.

use anyhow::Context as _;
use clap::Subcommand;
use serde_json::{Value as Json, json};

use super::CommonOptions;
use super::table::{self, items, minute, text};
use assurance_core::domain::operator::TokenScope;
use assurance_service::app::operators;
use assurance_service::open::open;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a token for an operator or a pipeline; prints the token once.
    Create {
        /// Name of the token's holder in the audit log, at most 120 characters.
        #[arg(long)]
        name: String,
        /// Scope of the token: read, deploy or approve; may be given more than once.
        #[arg(long = "scope", value_name = "SCOPE", required = true)]
        scopes: Vec<TokenScope>,
    },
    /// List all operators' tokens, including revoked ones.
    List,
    /// Revoke an operators' token.
    Revoke {
        /// Name of the token's holder.
        #[arg(long)]
        name: String,
    },
}

fn print_tokens(all: &Json) {
    let row = |token: &Json| {
        let scopes: Vec<String> = items(&token["scopes"]).iter().map(text).collect();
        let (made, revoked) = (minute(&token["created_at"]), minute(&token["revoked_at"]));
        vec![text(&token["name"]), scopes.join(", "), made, revoked]
    };
    let rows = items(&all["tokens"]).iter().map(row).collect();
    table::print(&["NAME", "SCOPES", "CREATED", "REVOKED"], rows);
}

impl Command {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let opened = open(&common.load()?).await?;
        let (store, now) = (&opened.store, opened.clock.now());
        match self {
            Self::Create { name, scopes } => {
                let scopes = scopes.into_iter().collect();
                let made = operators::create(store, now, &name, scopes).await?;
                common.print_values(&[
                    ("id", json!(made.token.id)),
                    ("name", json!(made.token.name)),
                    ("scopes", json!(made.token.scopes)),
                    ("token", json!(*made.secret)),
                ]);
            }
            Self::List => {
                let tokens = operators::list(store).await?;
                common.print_answer(&json!({"tokens": tokens}), print_tokens);
            }
            Self::Revoke { name } => {
                let revoked = operators::revoke(store, now, &name).await;
                revoked.with_context(|| format!("token {name:?}"))?;
                common.print_values(&[("revoked", json!(name))]);
            }
        }
        Ok(())
    }
}
