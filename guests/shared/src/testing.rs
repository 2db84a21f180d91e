//! The corpus: real files that other projects have published, for tests on machines that have them.

use std::path::{Path, PathBuf};

/// Returns a folder of the corpus, which is at `ASSURANCE_CORPUS`, otherwise in `shared/data` next
/// to the repository. `None`, after a note on standard error, if this machine does not have it.
#[must_use]
pub fn corpus(folder: &str) -> Option<PathBuf> {
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

/// Returns the files in a folder and its subfolders, sorted.
///
/// # Panics
/// If a folder cannot be read.
#[must_use]
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// Returns the files in a folder and its subfolders that have this extension, sorted.
///
/// # Panics
/// If a folder cannot be read.
#[must_use]
pub fn files_with(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = files(folder);
    found.retain(|path| path.extension().is_some_and(|end| end == extension));
    found
}

/// Returns the text of a file.
///
/// # Panics
/// If the file cannot be read.
#[must_use]
pub fn read_text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
