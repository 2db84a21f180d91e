//! The OCI registry of the tests: Debian's `docker-registry`. It is unpacked and not installed,
//! because as a service it would listen on every address.

use std::path::{Path, PathBuf};

use crate::apt;
use crate::workspace::Workspace;

const PACKAGE: &str = "docker-registry";

/// Returns the program: the installed one, otherwise an unpacked one.
pub(crate) fn program(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let installed = Path::new("/usr/bin").join(PACKAGE);
    if installed.exists() {
        return Ok(installed);
    }
    let folder = workspace.target.join(PACKAGE);
    let program = folder.join("usr/bin").join(PACKAGE);
    if !program.exists() {
        apt::unpack(PACKAGE, &folder, "the tests need an OCI registry")?;
    }
    Ok(program)
}
