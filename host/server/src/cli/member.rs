//! `assurance member …`.

use clap::Subcommand;

use super::CommonOptions;
use super::member_add::MemberAdd;
use super::member_list::MemberList;
use super::member_remove::MemberRemove;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Add a user to a workspace, or change a member's role.
    Add(MemberAdd),
    /// List the members of a workspace.
    List(MemberList),
    /// Remove a member from a workspace; a running service applies it within a second.
    Remove(MemberRemove),
}

impl Command {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        match self {
            Self::Add(command) => command.run(common).await,
            Self::List(command) => command.run(common).await,
            Self::Remove(command) => command.run(common).await,
        }
    }
}
