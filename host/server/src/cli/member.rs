//! `assurance member …`.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::CommonOptions;
use super::table::{self, items, minute, text};
use super::user::UserArgs;
use assurance_core::config::FlagOverrides;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::role::Role;
use assurance_identity::IdentityService;
use assurance_service::open::open;

/// Number of members that one query reads.
const PAGE: u32 = 1_000;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Add a user to a workspace, or change a member's role.
    Add(MemberAddArgs),
    /// List the members of a workspace.
    List(MemberListArgs),
    /// Remove a member from a workspace; a running service applies it within a second.
    Remove(MemberRemoveArgs),
}

#[derive(Debug, Args)]
pub(super) struct MemberAddArgs {
    /// Id or slug of the workspace.
    #[arg(long)]
    workspace: String,
    #[command(flatten)]
    user: UserArgs,
    /// Role: viewer, member, admin or owner.
    #[arg(long, default_value = "member")]
    role: Role,
}

#[derive(Debug, Args)]
pub(super) struct MemberListArgs {
    /// Id or slug of the workspace.
    #[arg(long)]
    workspace: String,
}

#[derive(Debug, Args)]
pub(super) struct MemberRemoveArgs {
    /// Id or slug of the workspace.
    #[arg(long)]
    workspace: String,
    /// Email address of the member.
    #[arg(long, value_name = "EMAIL")]
    user: String,
}

impl Command {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let identity = open(&common.load(FlagOverrides::default())?).await?.identity;
        match self {
            Self::Add(MemberAddArgs { workspace, user, role }) => {
                let workspace = identity.workspace(&workspace).await?;
                let user = identity.user_by_email(&user.email).await?;
                let put = identity.put_member(workspace.id, user.id, role).await;
                put.with_context(|| format!("{} in workspace {}", user.email, workspace.slug))?;
                common.output().values(&[
                    ("workspace_id", json!(workspace.id)),
                    ("user_id", json!(user.id)),
                    ("role", json!(role)),
                ]);
            }
            Self::List(MemberListArgs { workspace }) => {
                let workspace = identity.workspace(&workspace).await?;
                let members = list(&identity, workspace.id).await?;
                common.output().answer(&json!({ "members": members }), print_members);
            }
            Self::Remove(MemberRemoveArgs { workspace, user }) => {
                let workspace = identity.workspace(&workspace).await?;
                let user = identity.user_by_email(&user).await?;
                let removed = identity.remove_member(workspace.id, user.id).await;
                removed
                    .with_context(|| format!("{} in workspace {}", user.email, workspace.slug))?;
                common
                    .output()
                    .values(&[("workspace_id", json!(workspace.id)), ("user_id", json!(user.id))]);
            }
        }
        Ok(())
    }
}

async fn list(identity: &IdentityService, workspace: WorkspaceId) -> anyhow::Result<Vec<Json>> {
    let (mut members, mut cursor) = (Vec::new(), None);
    loop {
        let page = identity.members_of(workspace, cursor.as_deref(), PAGE).await?;
        members.extend(page.0.into_iter().map(|(member, joined_at)| {
            json!({
                "user_id": member.user,
                "email": member.email,
                "display_name": member.display_name,
                "role": member.role,
                "joined_at": joined_at,
            })
        }));
        cursor = page.1;
        if cursor.is_none() {
            return Ok(members);
        }
    }
}

fn print_members(all: &Json) {
    let row = |member: &Json| {
        let (email, name) = (text(&member["email"]), text(&member["display_name"]));
        vec![email, name, text(&member["role"]), minute(&member["joined_at"])]
    };
    let rows = items(&all["members"]).iter().map(row).collect();
    table::print(&["EMAIL", "NAME", "ROLE", "JOINED"], rows);
}
