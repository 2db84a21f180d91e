//! `assurance member …`.

use anyhow::Context as _;
use clap::Subcommand;
use serde_json::{Value as Json, json};

use super::CommonOptions;
use super::table::{self, items, minute, text};
use super::user::UserArgs;
use super::workspace::WorkspaceArgs;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::role::Role;
use assurance_identity::IdentityService;
use assurance_service::open::open;

/// Number of members that one query reads.
const PAGE: u32 = 1_000;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Add a user to a workspace, or change a member's role.
    Add {
        #[command(flatten)]
        workspace: WorkspaceArgs,
        #[command(flatten)]
        user: UserArgs,
        /// Role: viewer, member, admin or owner.
        #[arg(long, default_value = "member")]
        role: Role,
    },
    /// List the members of a workspace.
    List(WorkspaceArgs),
    /// Remove a member from a workspace; a running service applies it within a second.
    Remove {
        #[command(flatten)]
        workspace: WorkspaceArgs,
        #[command(flatten)]
        user: UserArgs,
    },
}

impl Command {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let identity = open(&common.load()?).await?.identity;
        match self {
            Self::Add { workspace, user, role } => {
                let workspace = workspace.find(&identity).await?;
                let user = user.find(&identity).await?;
                let put = identity.put_member(workspace.id, user.id, role).await;
                put.with_context(|| format!("{} in workspace {}", user.email, workspace.slug))?;
                common.print_values(&[
                    ("workspace_id", json!(workspace.id)),
                    ("user_id", json!(user.id)),
                    ("role", json!(role)),
                ]);
            }
            Self::List(workspace) => {
                let workspace = workspace.find(&identity).await?;
                let members = list(&identity, workspace.id).await?;
                common.print_answer(&json!({ "members": members }), print_members);
            }
            Self::Remove { workspace, user } => {
                let workspace = workspace.find(&identity).await?;
                let user = user.find(&identity).await?;
                let removed = identity.remove_member(workspace.id, user.id).await;
                removed
                    .with_context(|| format!("{} in workspace {}", user.email, workspace.slug))?;
                common.print_values(&[
                    ("workspace_id", json!(workspace.id)),
                    ("user_id", json!(user.id)),
                ]);
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
