//! `assurance area …`: creates, checks and deploys areas, and manages their
//! versions.

mod check;
mod decide;
mod deploy;
mod figures;
mod logs;
mod new;
mod push;
mod read;
mod replay;
mod shown;
mod sign;
mod source;

use std::path::Path;

use anyhow::Context as _;
use clap::{Args, Subcommand};

use super::CommonOptions;
use super::operators::OperatorsClientArgs;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a crate for a new area, with a test.
    New(new::AreaNewArgs),
    /// Check locally whether a component can be deployed.
    Check(check::AreaCheckArgs),
    /// Sign a component; writes FILE.sig.
    Sign(sign::AreaSignArgs),
    /// Push a component with its signature to an OCI registry.
    Push(push::AreaPushArgs),
    /// Deploy a component to a running service.
    Deploy(deploy::AreaDeployArgs),
    /// List the areas of a running service.
    List {
        #[command(flatten)]
        target: OperatorsClientArgs,
    },
    /// Show the state of one area: its live version, its nodes, its trial, and
    /// staged versions.
    Status(AreaArgument),
    /// List the versions of an area, newest first.
    History {
        #[command(flatten)]
        area: AreaArgument,
        /// Maximum number of versions to list.
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// Show the last log lines of an area's code and its last failed calls on
    /// one node.
    Logs(logs::AreaLogsArgs),
    /// Show the differences between the responses of the shadow and the live
    /// version; or, for a named version, the differences between two manifests.
    Diff(read::AreaDiffArgs),
    #[command(flatten)]
    Decide(decide::Decision),
    /// Replay a recorded call offline and show the differences.
    Replay(replay::AreaReplayArgs),
}

/// Area of a running service that the command is about.
#[derive(Debug, Args)]
pub(super) struct AreaArgument {
    /// Name of the area.
    name: String,
    #[command(flatten)]
    target: OperatorsClientArgs,
}

impl Command {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        match self {
            Self::New(command) => command.run(common),
            Self::Check(command) => command.run(common).await,
            Self::Sign(command) => command.run(common),
            Self::Push(command) => command.run(common).await,
            Self::Deploy(command) => command.run(common).await,
            Self::List { target } => read::list(target, common).await,
            Self::Status(area) => read::status(area, common).await,
            Self::History { area, limit } => read::history(area, limit, common).await,
            Self::Logs(command) => command.run(common).await,
            Self::Diff(command) => command.run(common).await,
            Self::Decide(decision) => decision.run(common).await,
            Self::Replay(command) => command.run(common).await,
        }
    }
}

fn read_component(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file)
        .with_context(|| format!("{} cannot be read; is the path right?", file.display()))
}
