//! Builds the host binary.
//!
//! Always selects the whole workspace: cargo unites features over the selection, and with one
//! selection the dependencies are compiled once for building and testing.

use std::path::PathBuf;

use crate::process;
use crate::workspace::{Workspace, cargo};

/// Cargo profile with which the program `assurance` is built.
#[derive(Clone, Copy)]
pub(crate) enum Profile {
    /// Profile that builds in the shortest time.
    Dev,
    /// Profile whose program runs fastest.
    Release,
}

/// Builds the program `assurance`. Returns its path.
pub(crate) fn build(workspace: &Workspace, profile: Profile) -> anyhow::Result<PathBuf> {
    let (profile, folder) = match profile {
        Profile::Dev => ("dev", "debug"),
        Profile::Release => ("release", "release"),
    };
    let mut command = cargo();
    command.current_dir(&workspace.root).args(["build", "--workspace", "--bin", "assurance"]);
    process::run(command.args(["--profile", profile]))?;
    Ok(workspace.target.join(folder).join("assurance"))
}
