//! Programs of Debian packages for the tests. A package is unpacked and not installed, because as a
//! service it would listen on every address.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::apt;
use crate::workspace::Workspace;

/// Installs npm and Python's virtual environments unless they work; tests install packages of both
/// registries with them.
pub(crate) fn package_managers() -> anyhow::Result<()> {
    let checks =
        [("npm", "npm", "--version"), ("python3-venv", "python3", "-cimport ensurepip, venv")];
    let works = |program: &str, argument: &str| {
        let output = Command::new(program).arg(argument).output();
        output.is_ok_and(|output| output.status.success())
    };
    let missing = checks.into_iter().filter(|(_, program, argument)| !works(program, argument));
    let missing: Vec<&str> = missing.map(|(package, ..)| package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    apt::install(&missing, &format!("the tests need {}", missing.join(" and ")))
}

/// Returns the path of an OCI registry's server program.
pub(crate) fn registry(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    find(workspace, "docker-registry", &["docker-registry"])
}

/// Returns the path of `promtool`, which checks alert rules.
pub(crate) fn promtool(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    find(workspace, "promtool", &["prometheus"])
}

/// Returns the path of a Redis server program for shared rate limits, unpacked with the libraries
/// that it needs.
pub(crate) fn redis(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let packages = ["redis-server", "redis-tools", "libjemalloc2", "liblzf1"];
    find(workspace, "redis-server", &packages)
}

/// Returns the path of a program: the installed one, otherwise one in the unpacked packages, the
/// first of which names the folder.
fn find(workspace: &Workspace, name: &str, packages: &[&str]) -> anyhow::Result<PathBuf> {
    let installed = Path::new("/usr/bin").join(name);
    if installed.exists() {
        return Ok(installed);
    }
    let folder = workspace.target.join(packages[0]);
    let program = folder.join("usr/bin").join(name);
    if !program.exists() {
        apt::unpack(packages, &folder, &format!("the tests need {name}"))?;
    }
    Ok(program)
}
