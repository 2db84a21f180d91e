//! Real files published by other projects, for tests on machines that have these files.

use std::path::{Path, PathBuf};

/// Returns a folder of the corpus; `None`, after a note on standard error, if this machine does not
/// have it.
pub(crate) fn corpus(folder: &str) -> Option<PathBuf> {
    let root = std::env::var_os("ASSURANCE_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = root.join(folder);
    if !path.is_dir() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}

/// Returns the files in a folder and its subfolders that have this extension, sorted.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the text of a file.
pub(crate) fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
