//! Programs of Debian packages for the tests. A package is unpacked and not installed, because as a
//! service it would listen on every address.

use std::path::{Path, PathBuf};

use crate::apt;
use crate::workspace::Workspace;

/// Returns the OCI registry.
pub(crate) fn registry(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    find(workspace, "docker-registry", "docker-registry")
}

/// Returns the program that checks alert rules.
pub(crate) fn promtool(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    find(workspace, "promtool", "prometheus")
}

/// Returns a program: the installed one, otherwise one of the unpacked package.
fn find(workspace: &Workspace, name: &str, package: &str) -> anyhow::Result<PathBuf> {
    let installed = Path::new("/usr/bin").join(name);
    if installed.exists() {
        return Ok(installed);
    }
    let folder = workspace.target.join(package);
    let program = folder.join("usr/bin").join(name);
    if !program.exists() {
        apt::unpack(package, &folder, &format!("the tests need {name}"))?;
    }
    Ok(program)
}
