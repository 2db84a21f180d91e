//! Entry point for fuzzing the CODEOWNERS parser.

use crate::codeowners::{Dialect, PathCounts, from_root, hidden_for_sure, listed, parse};

/// Maximum number of paths that are matched with the rules.
const PATHS: usize = 50;

/// Dialects in which a file is read: one that is recognized, or a given one.
const DIALECTS: [Option<Dialect>; 3] = [None, Some(Dialect::Github), Some(Dialect::Gitlab)];

/// Parses the bytes as a CODEOWNERS file, and determines the owners of its own lines as paths. The
/// size of the input chooses the dialect, so that an execution takes the time of one import.
/// Returns the total size of warnings and owners in bytes.
pub fn codeowners(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let paths: Vec<_> = text.lines().take(PATHS).map(listed).collect();
    let paths: Vec<&str> = paths.iter().filter_map(|path| from_root(path)).collect();
    let Ok(file) = parse(bytes, DIALECTS[bytes.len() % DIALECTS.len()]) else { return 0 };
    let mut tally = PathCounts::default();
    tally.count(&file, paths.iter().copied());
    let warnings = [tally.warnings(&file), hidden_for_sure(&file)].concat();
    let owned = paths.iter().map(|path| file.owned(path).owners.concat().len());
    warnings.iter().map(|warning| warning.to_string().len()).sum::<usize>()
        + owned.max().unwrap_or_default()
}
