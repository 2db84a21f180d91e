//! `cargo xtask serve`: from a clone to a served demonstration in one command.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use clap::Args;

use crate::host::Profile;
use crate::workspace::Workspace;
use crate::{guests, host};

#[derive(Args)]
pub(crate) struct Options {
    /// Build and run the optimized host
    #[arg(long)]
    release: bool,
    /// Additional arguments for `assurance serve`
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// Builds what is out of date, then executes the host in place of this process, so that it receives
/// signals.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<()> {
    guests::build(workspace, guests::Options { fixtures: false })?;
    let profile = if options.release { Profile::Release } else { Profile::Quick };
    let binary = host::build(workspace, profile)?;
    let error = Command::new(binary)
        .current_dir(&workspace.root)
        .args(["serve", "--demo", "--data-dir", "./data", "--areas"])
        .arg(workspace.areas())
        .args(&options.arguments)
        .exec();
    Err(error.into())
}
