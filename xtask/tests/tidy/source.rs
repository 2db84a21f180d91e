//! The repository's own files, read as text.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that contain no sources of this repository.
const SKIPPED: [&str; 5] = [".git", "target", "data", "node_modules", "__pycache__"];

/// One file of the repository.
pub(crate) struct Source {
    /// Path relative to the repository, with `/`.
    pub(crate) path: String,
    /// Content of the file.
    pub(crate) text: String,
}

impl Source {
    /// Returns the text after the last dot of the name.
    pub(crate) fn extension(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or_default()
    }

    /// Whether it is only compiled for tests.
    fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }

    /// Returns Rust code without comments and without unit tests. By convention unit tests are
    /// separate files or the last item of a file.
    pub(crate) fn code(&self) -> String {
        if self.is_test() {
            return String::new();
        }
        let product = self.text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let lines = product.lines().map(|line| line.split("//").next().unwrap_or_default());
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Returns the repository's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the text of a file.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("a file of the repository")
}

/// Returns every file with one of these extensions, sorted by path.
pub(crate) fn sources(extensions: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    gather(&root(), "", extensions, &mut found);
    assert!(!found.is_empty(), "no {extensions:?} file found");
    found.sort_by(|a: &Source, b| a.path.cmp(&b.path));
    found
}

fn gather(folder: &Path, prefix: &str, extensions: &[&str], found: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("a readable folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.path().is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                gather(&entry.path(), &format!("{path}/"), extensions, found);
            }
        } else if extensions.contains(&path.rsplit('.').next().unwrap_or_default()) {
            let text = fs::read_to_string(entry.path()).expect("a text file");
            found.push(Source { path, text });
        }
    }
}
