//! `cargo xtask dependencies`: lists the compiled registry crates in the target folder. `.ci/cache`
//! stores only these, so that a workspace crate of another commit is never restored.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::guests;
use crate::wasm;
use crate::workspace::Workspace;

/// Returns the folders below the target folder into which cargo compiles, one for each profile and
/// target.
fn built(target: &Path) -> [PathBuf; 3] {
    let wasm = target.join("wasm");
    [
        target.join("debug"),
        wasm.join(guests::PROFILE),
        wasm.join(wasm::TARGET).join(guests::PROFILE),
    ]
}

/// Prints the paths of compiled registry crates, relative to the target folder, one on each line.
pub(crate) fn list(workspace: &Workspace) -> anyhow::Result<()> {
    for folder in built(&workspace.target) {
        for kind in [".fingerprint", "build", "deps"] {
            let Ok(entries) = fs::read_dir(folder.join(kind)) else { continue };
            for entry in entries {
                let path = entry?.path();
                if is_dependency(&path, &workspace.names) {
                    println!("{}", path.strip_prefix(&workspace.target)?.display());
                }
            }
        }
    }
    Ok(())
}

/// Whether a file or folder of cargo (`serde-HASH`, `libserde-HASH.rlib`) belongs to a crate
/// outside the workspace.
fn is_dependency(path: &Path, own: &BTreeSet<String>) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some((krate, _hash)) = name.rsplit_once('-') else { return false };
    let library = krate.strip_prefix("lib").unwrap_or(krate);
    !own.contains(krate) && !own.contains(library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_workspace_compiles_itself_is_no_dependency() {
        let own = ["area-sdk", "area_sdk", "e2e"].map(str::to_owned).into();
        let is = |path: &str| is_dependency(Path::new(path), &own);
        for dependency in ["serde-00ff", "deps/libserde-00ff.rlib", "deps/serde_json-00ff.d"] {
            assert!(is(dependency), "{dependency}");
        }
        for own in ["area-sdk-00ff", "deps/libarea_sdk-00ff.rmeta", "deps/e2e-00ff", "deps/lost"] {
            assert!(!is(own), "{own}");
        }
    }
}
