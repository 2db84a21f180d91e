//! Tests of format detection with real files; skipped on machines without these files.

use std::collections::BTreeMap;
use std::path::Path;

use area_shared::testing::{corpus, files};

use super::*;

/// Uploads every file of a folder. Returns the filenames by detected format or refusal code.
fn fates(folder: &Path) -> BTreeMap<String, Vec<String>> {
    let paths = files(folder);
    let mut fates = BTreeMap::<String, Vec<String>>::new();
    for path in paths.iter().filter(|path| !path.to_string_lossy().contains("schema")) {
        let content = std::fs::read(path).expect("a file");
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        fates.entry(fate(&name, &content)).or_default().push(name);
    }
    fates
}

#[test]
fn real_files_are_taken_for_what_they_are() {
    let Some(corpus) = corpus("") else { return };
    for (folder, format, others) in [
        ("sarif", "sarif", 0),
        ("cyclonedx", "cyclonedx", 2),
        ("spdx", "spdx", 1),
        ("osv", "osv", 0),
        ("codeowners", "code_owners", 3),
    ] {
        let fates = fates(&corpus.join(folder));
        println!("{folder}: {fates:#?}");
        let taken = fates.get(format).map_or(0, Vec::len);
        let all: usize = fates.values().map(Vec::len).sum();
        assert!(taken > 0 && all - taken <= others, "{folder}: {fates:#?}");
    }
}

#[test]
fn broken_json_never_gets_through_as_a_format() {
    let Some(folder) = corpus("jsontestsuite") else { return };
    for path in files(&folder) {
        let content = std::fs::read(&path).expect("a file");
        if content.is_empty() {
            continue; // Refused by the schema of the request.
        }
        let fate = fate("file.json", &content);
        let is_invalid = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("n_"));
        let known = ["sarif", "cyclonedx", "spdx", "osv"].contains(&fate.as_str());
        assert!(!(is_invalid && known), "{}: {fate}", path.display());
    }
}
