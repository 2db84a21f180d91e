//! `assurance area …`: an area's versions, from the first line of code to a
//! rollback.

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
use super::operators::Target;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Begin a new area: a crate that builds, with its test.
    New(new::AreaNew),
    /// Say whether a component can be deployed, without deploying it.
    Check(check::AreaCheck),
    /// Sign a component; writes FILE.sig.
    Sign(sign::AreaSign),
    /// Put a component into an OCI registry, with its signature.
    Push(push::AreaPush),
    /// Send a component to a running service, and let it answer.
    Deploy(deploy::AreaDeploy),
    /// The areas of a running service.
    List {
        #[command(flatten)]
        target: Target,
    },
    /// One area: what answers, on which nodes, what waits.
    Status(read::AreaStatus),
    /// The versions an area had, newest first.
    History(read::AreaHistory),
    /// What its guests said last, and how its last calls failed, at the node
    /// that is asked.
    Logs(logs::AreaLogs),
    /// How the answers of the shadow differ; or, of a version that is named,
    /// what it declares otherwise than another.
    Diff(read::AreaDiff),
    /// Let a version answer that the service has.
    Activate(decide::AreaActivate),
    /// Let a version answer for some workspaces that the service has.
    Canary(decide::AreaCanary),
    /// Let a version answer copies of requests that the service has.
    Shadow(decide::AreaShadow),
    /// End a trial; the live version answers everybody.
    Stop(decide::AreaStop),
    /// Approve the capabilities that a version asks for.
    Approve(decide::AreaApprove),
    /// End the canary that runs, or else let the version answer that was live
    /// before.
    Rollback(decide::AreaRollback),
    /// Run a recorded call again, offline, and show where it differs.
    Replay(replay::AreaReplay),
    /// Remove an area; what it has stored stays.
    Remove(decide::AreaRemove),
}

/// An area of a running service.
#[derive(Debug, Args)]
struct AreaArgument {
    /// The area.
    name: String,
    #[command(flatten)]
    target: Target,
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
            Self::Status(command) => command.run(common).await,
            Self::History(command) => command.run(common).await,
            Self::Logs(command) => command.run(common).await,
            Self::Diff(command) => command.run(common).await,
            Self::Activate(command) => command.run(common).await,
            Self::Canary(command) => command.run(common).await,
            Self::Shadow(command) => command.run(common).await,
            Self::Stop(command) => command.run(common).await,
            Self::Approve(command) => command.run(common).await,
            Self::Rollback(command) => command.run(common).await,
            Self::Replay(command) => command.run(common).await,
            Self::Remove(command) => command.run(common).await,
        }
    }
}

fn read_component(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file)
        .with_context(|| format!("{} cannot be read; is the path right?", file.display()))
}
