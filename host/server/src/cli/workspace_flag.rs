//! `assurance workspace flag set`.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::CommonOptions;
use assurance_core::config::FlagOverrides;
use assurance_service::open::open;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Turn a feature on or off; a running service applies it within a second.
    Set(SetFlag),
}

#[derive(Debug, Args)]
pub(super) struct SetFlag {
    /// Id or slug of the workspace.
    #[arg(long)]
    workspace: String,
    /// Name of the feature, such as evidence_envelopes.
    flag: String,
    /// New state; features are on by default.
    state: FlagState,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FlagState {
    On,
    Off,
}

impl Command {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let Self::Set(set) = self;
        let config = common.load(FlagOverrides::default())?;
        let identity = open(&config).await?.identity;
        let workspace = identity.workspace(&set.workspace).await?;
        let enabled = matches!(set.state, FlagState::On);
        identity.set_flag(workspace.id, &set.flag, enabled).await?;
        common.output().values(&[
            ("workspace_id", json!(workspace.id)),
            ("flag", json!(set.flag)),
            ("enabled", json!(enabled)),
        ]);
        Ok(())
    }
}
