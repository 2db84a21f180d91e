//! `assurance member …`.

use clap::Subcommand;

use super::CommonOptions;
use super::member_add::MemberAdd;
use super::member_list::MemberList;
use super::member_remove::MemberRemove;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a person a member of a workspace, or change a member's role.
    Add(MemberAdd),
    /// Print the members of a workspace.
    List(MemberList),
    /// Remove a member from a workspace; a running service follows within a second.
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
