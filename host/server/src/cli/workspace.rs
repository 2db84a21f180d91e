//! `assurance workspace …`.

use clap::Subcommand;

use super::CommonOptions;
use super::workspace_create::WorkspaceCreate;
use super::workspace_flag;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a workspace.
    Create(WorkspaceCreate),
    /// Manage features of a workspace.
    #[command(subcommand)]
    Flag(workspace_flag::Command),
}

impl Command {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        match self {
            Self::Create(command) => command.run(common).await,
            Self::Flag(command) => command.run(common).await,
        }
    }
}
