//! The OCI registry of the tests: Debian's `docker-registry`. Unpacked into
//! the target folder and not installed, for as a service it would listen on
//! every address.

use std::path::{Path, PathBuf};

use crate::apt;
use crate::workspace::Workspace;

const PACKAGE: &str = "docker-registry";

/// The program: the machine's own, or else one unpacked for this.
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
