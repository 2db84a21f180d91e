//! `assurance workspace …`.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::CommonOptions;
use assurance_core::domain::people::Workspace;
use assurance_identity::{IdentityService, PeopleError};
use assurance_service::open::open;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a workspace.
    Create {
        /// Display name of the workspace.
        #[arg(long)]
        name: String,
        /// Unique name for URLs: lower-case letters, digits, hyphens; default:
        /// derived from the name.
        #[arg(long)]
        slug: Option<String>,
        /// Email address of the owner; default: no owner yet (see `member add`).
        #[arg(long, value_name = "EMAIL")]
        owner: Option<String>,
    },
    /// Manage features of a workspace.
    #[command(subcommand)]
    Flag(FlagCommand),
}

#[derive(Debug, Args)]
pub(super) struct WorkspaceArgs {
    /// Id or slug of the workspace.
    #[arg(long)]
    workspace: String,
}

impl WorkspaceArgs {
    pub(super) async fn find(&self, identity: &IdentityService) -> Result<Workspace, PeopleError> {
        identity.workspace(&self.workspace).await
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum FlagCommand {
    /// Turn a feature on or off; a running service applies it within a second.
    Set {
        #[command(flatten)]
        workspace: WorkspaceArgs,
        /// Name of the feature, such as evidence_envelopes.
        flag: String,
        /// New state of the feature; features are on by default.
        state: FlagState,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum FlagState {
    On,
    Off,
}

impl Command {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let identity = open(&common.load()?).await?.identity;
        match self {
            Self::Create { name, slug, owner } => {
                let owner = match &owner {
                    Some(email) => Some(identity.user_by_email(email).await?.id),
                    None => None,
                };
                let made = identity.create_workspace(owner, &name, slug.as_deref()).await?;
                common.print_values(&[("id", json!(made.id)), ("slug", json!(made.slug))]);
            }
            Self::Flag(FlagCommand::Set { workspace, flag, state }) => {
                let workspace = workspace.find(&identity).await?;
                let enabled = matches!(state, FlagState::On);
                identity.set_flag(workspace.id, &flag, enabled).await?;
                common.print_values(&[
                    ("workspace_id", json!(workspace.id)),
                    ("flag", json!(flag)),
                    ("enabled", json!(enabled)),
                ]);
            }
        }
        Ok(())
    }
}
