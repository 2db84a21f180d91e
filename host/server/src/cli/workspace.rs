//! `assurance workspace …`.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::CommonOptions;
use assurance_core::config::FlagOverrides;
use assurance_service::open::open;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a workspace.
    Create(WorkspaceCreateArgs),
    /// Manage features of a workspace.
    #[command(subcommand)]
    Flag(FlagCommand),
}

#[derive(Debug, Args)]
pub(super) struct WorkspaceCreateArgs {
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
}

#[derive(Debug, Subcommand)]
pub(super) enum FlagCommand {
    /// Turn a feature on or off; a running service applies it within a second.
    Set(FlagSetArgs),
}

#[derive(Debug, Args)]
pub(super) struct FlagSetArgs {
    /// Id or slug of the workspace.
    #[arg(long)]
    workspace: String,
    /// Name of the feature, such as evidence_envelopes.
    flag: String,
    /// New state of the feature; features are on by default.
    state: FlagState,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FlagState {
    On,
    Off,
}

impl Command {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let identity = open(&common.load(FlagOverrides::default())?).await?.identity;
        match self {
            Self::Create(WorkspaceCreateArgs { name, slug, owner }) => {
                let owner = match &owner {
                    Some(email) => Some(identity.user_by_email(email).await?.id),
                    None => None,
                };
                let made = identity.create_workspace(owner, &name, slug.as_deref()).await?;
                common.output().values(&[("id", json!(made.id)), ("slug", json!(made.slug))]);
            }
            Self::Flag(FlagCommand::Set(FlagSetArgs { workspace, flag, state })) => {
                let workspace = identity.workspace(&workspace).await?;
                let enabled = matches!(state, FlagState::On);
                identity.set_flag(workspace.id, &flag, enabled).await?;
                common.output().values(&[
                    ("workspace_id", json!(workspace.id)),
                    ("flag", json!(flag)),
                    ("enabled", json!(enabled)),
                ]);
            }
        }
        Ok(())
    }
}
