//! `assurance access-token …`.

use std::collections::BTreeMap;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::CommonOptions;
use super::table::{self, items, minute, text};
use super::workspace::WorkspaceArgs;
use assurance_core::domain::id::{AccessTokenId, WorkspaceId};
use assurance_core::domain::people::AccessToken;
use assurance_core::domain::role::Role;
use assurance_core::domain::time::Timestamp;
use assurance_identity::{IdentityService, IssuedAccessToken, NewAccessToken};
use assurance_service::open::open;
use assurance_store::{Store, users};

/// Number of access tokens that one query reads.
const PAGE: u32 = 1_000;
const DAY_MS: i64 = 86_400_000;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create an access token for a machine; prints the token once.
    Create(AccessTokenCreateArgs),
    /// List the access tokens of a workspace.
    List(WorkspaceArgs),
    /// Revoke an access token; a running service applies it within a second.
    Revoke {
        #[command(flatten)]
        workspace: WorkspaceArgs,
        /// Id of the token, from `access-token list`.
        #[arg(long)]
        id: AccessTokenId,
    },
}

#[derive(Debug, Args)]
pub(super) struct AccessTokenCreateArgs {
    #[command(flatten)]
    workspace: WorkspaceArgs,
    /// Email address of the member whose access the machine gets.
    #[arg(long, value_name = "EMAIL")]
    user: String,
    /// Name of the machine or pipeline that uses the token.
    #[arg(long)]
    name: String,
    /// Highest role of requests with the token: viewer, member or admin. If the member's own role
    /// is lower, that role applies.
    #[arg(long)]
    role: Role,
    /// Days until the token expires.
    #[arg(long, value_name = "DAYS")]
    days: u32,
}

impl Command {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let opened = open(&common.load()?).await?;
        let identity = &opened.identity;
        match self {
            Self::Create(command) => {
                let issued = command.create(identity, opened.clock.now()).await?;
                let IssuedAccessToken { token, secret } = issued;
                common.print_values(&[
                    ("id", json!(token.id)),
                    ("workspace_id", json!(token.workspace)),
                    ("role", json!(token.role)),
                    ("expires_at", json!(token.expires_at)),
                    ("token", json!(*secret)),
                ]);
            }
            Self::List(workspace) => {
                let tokens = list(identity, workspace.find(identity).await?.id).await?;
                let makers = makers(&opened.store, &tokens).await?;
                let all: Vec<Json> = tokens.iter().map(shown).collect();
                let all = json!({ "access_tokens": all });
                common.print_answer(&all, |all| print_tokens(all, &makers));
            }
            Self::Revoke { workspace, id } => {
                let workspace = workspace.find(identity).await?;
                let revoked = identity.revoke_access_token(workspace.id, id, None).await?;
                let missing = || format!("workspace {} has no access token {id}", workspace.slug);
                revoked.then_some(()).with_context(missing)?;
                common.print_values(&[("revoked", json!(id))]);
            }
        }
        Ok(())
    }
}

impl AccessTokenCreateArgs {
    async fn create(
        self,
        identity: &IdentityService,
        now: Timestamp,
    ) -> anyhow::Result<IssuedAccessToken> {
        let workspace = self.workspace.find(identity).await?.id;
        let user = identity.user_by_email(&self.user).await?.id;
        let expires_at = now.plus_ms(i64::from(self.days) * DAY_MS);
        let Self { name, role, .. } = self;
        let new = NewAccessToken { workspace, user, name, role, expires_at };
        Ok(identity.create_access_token(new).await?)
    }
}

async fn list(
    identity: &IdentityService,
    workspace: WorkspaceId,
) -> anyhow::Result<Vec<AccessToken>> {
    let (mut tokens, mut cursor) = (Vec::new(), None);
    loop {
        let page = identity.access_tokens_of(workspace, cursor.as_deref(), PAGE).await?;
        tokens.extend(page.0);
        cursor = page.1;
        if cursor.is_none() {
            return Ok(tokens);
        }
    }
}

/// Returns the email address of each token's maker, by user id. The maker may
/// have left the workspace.
async fn makers(store: &Store, tokens: &[AccessToken]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut makers = BTreeMap::new();
    for token in tokens {
        let id = token.user.to_string();
        if !makers.contains_key(&id) {
            let user = store.read(async |c| users::find(c, token.user).await).await?;
            makers.extend(user.map(|user| (id, user.email)));
        }
    }
    Ok(makers)
}

fn print_tokens(all: &Json, makers: &BTreeMap<String, String>) {
    let row = |token: &Json| {
        let maker = text(&token["user_id"]);
        vec![
            text(&token["name"]),
            text(&token["role"]),
            makers.get(&maker).cloned().unwrap_or(maker),
            minute(&token["created_at"]),
            minute(&token["expires_at"]),
            minute(&token["last_used_at"]),
            text(&token["id"]),
        ]
    };
    let rows = items(&all["access_tokens"]).iter().map(row).collect();
    table::print(&["NAME", "ROLE", "USER", "CREATED", "EXPIRES", "USED", "ID"], rows);
}

fn shown(token: &AccessToken) -> Json {
    json!({
        "id": token.id,
        "name": token.name,
        "role": token.role,
        "user_id": token.user,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "last_used_at": token.last_used_at,
    })
}
