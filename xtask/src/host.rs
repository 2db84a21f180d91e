//! Building the host binary.
//!
//! Always with the whole workspace selected: cargo unites features over what
//! is selected, and one selection means the dependencies are compiled once for
//! building, testing and serving alike.

use std::path::PathBuf;
use std::process::Command;

use crate::process;
use crate::workspace::{Workspace, cargo};

/// Builds `assurance` and tells where it is.
pub(crate) fn build(workspace: &Workspace, release: bool) -> anyhow::Result<PathBuf> {
    let mut command = Command::new(cargo());
    command.current_dir(&workspace.root).args(["build", "--workspace", "--bin", "assurance"]);
    if release {
        command.arg("--release");
    }
    process::run(&mut command)?;
    Ok(workspace.target.join(if release { "release" } else { "debug" }).join("assurance"))
}
