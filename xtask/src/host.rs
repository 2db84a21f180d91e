//! Builds the host binary.
//!
//! Always selects the whole workspace: cargo unites features over the selection, and with one
//! selection the dependencies are compiled once for building, testing and serving.

use std::path::PathBuf;

use crate::process;
use crate::workspace::{Workspace, cargo};

/// Builds `assurance`. Returns its path.
pub(crate) fn build(workspace: &Workspace, release: bool) -> anyhow::Result<PathBuf> {
    let mut command = cargo();
    command.current_dir(&workspace.root).args(["build", "--workspace", "--bin", "assurance"]);
    if release {
        command.arg("--release");
    }
    process::run(&mut command)?;
    Ok(workspace.target.join(if release { "release" } else { "debug" }).join("assurance"))
}
