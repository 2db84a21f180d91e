//! `assurance member list`.

use clap::Args;
use serde_json::{Value as Json, json};

use super::CommonOptions;
use super::table::{self, items, minute, text};
use assurance_core::config::FlagOverrides;
use assurance_service::open::open;

/// Number of members that one query reads.
const PAGE: u32 = 1_000;

#[derive(Debug, Args)]
pub(super) struct MemberList {
    /// Id or slug of the workspace.
    #[arg(long)]
    workspace: String,
}

impl MemberList {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let config = common.load(FlagOverrides::default())?;
        let identity = open(&config).await?.identity;
        let workspace = identity.workspace(&self.workspace).await?;
        let mut members: Vec<Json> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let page = identity.members_of(workspace.id, cursor.as_deref(), PAGE).await?;
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
                break;
            }
        }
        common.output().answer(&json!({ "members": members }), print_members);
        Ok(())
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
