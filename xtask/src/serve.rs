//! `cargo xtask serve`: from a clone to a served demonstration in one command.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::anyhow;
use clap::Args;

use crate::host::Profile;
use crate::workspace::{GuestKind, Workspace};
use crate::{guests, host};

#[derive(Args)]
pub(crate) struct Options {
    /// Build and run host and areas as they are deployed
    #[arg(long)]
    release: bool,
    /// Additional arguments for `assurance serve`
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// Builds what is out of date, then executes the host in place of this process, so that it receives
/// signals.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<()> {
    let binary = build(workspace, options.release)?;
    let error = Command::new(binary)
        .current_dir(&workspace.root)
        .args(["serve", "--demo", "--data-dir", "./data", "--areas"])
        .arg(workspace.components(GuestKind::Area))
        .args(&options.arguments)
        .exec();
    Err(error.into())
}

/// Builds areas and host at the same time, because each ends with crates that keep one processor
/// busy. Returns the path of the host's program.
fn build(workspace: &Workspace, release: bool) -> anyhow::Result<PathBuf> {
    let profile = if release { Profile::Release } else { Profile::Dev };
    std::thread::scope(|scope| {
        let options = guests::Options { beside_host: true, release, ..guests::Options::default() };
        let areas = scope.spawn(move || guests::build(workspace, options));
        let binary = host::build(workspace, profile);
        if let Err(error) = &binary {
            eprintln!("{error:#}; this command ends when the areas are built too");
        }
        areas.join().map_err(|_| anyhow!("building the areas failed"))??;
        binary
    })
}
