//! Seeds: samples, files of the corpus, and inputs that were found.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Target;

/// Larger files make executions slow and few.
const MOST_BYTES: u64 = 100_000;
/// Files of one target.
const MOST_FILES: usize = 300;

/// The seeds of a target.
#[must_use]
pub fn seeds(target: &Target) -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> =
        target.samples.iter().map(|text| text.as_bytes().into()).collect();
    let mut files = Vec::new();
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("found").join(target.name);
    collect(&found, &mut files);
    if let Some(corpus) = corpus() {
        target.corpus.iter().for_each(|folder| collect(&corpus.join(folder), &mut files));
    }
    files.sort();
    files.truncate(MOST_FILES);
    seeds.extend(files.iter().filter_map(|file| fs::read(file).ok()));
    seeds.extend(long(target.name).into_iter().map(String::into_bytes));
    seeds
}

/// Inputs that were found and are long: many of one thing.
fn long(target: &str) -> Vec<String> {
    match target {
        "codeowners" => vec![
            (0..8_000).map(|number| format!("[{number}]\n")).collect(),
            format!("[a]{}\n{}", " @o".repeat(8_000), "/a\n".repeat(9_000)),
        ],
        "csv" => {
            let rows: String = (0..6_000).map(|number| format!("{number},q{number},\n")).collect();
            vec![format!("ID,Question,Answer\n{rows}")]
        }
        "sarif" => vec![references_to_one_list()],
        _ => Vec::new(),
    }
}

/// Runs that all refer to the same results.
fn references_to_one_list() -> String {
    let guid = r#"{"guid":"aaaaaaaa-0000-4000-8000-000000000001""#;
    let result = r#"{"ruleId":"A","message":{"text":"m"}}"#;
    let results = [result; 700].join(",");
    let references = vec![format!("{guid}}}"); 700].join(",");
    format!(
        r#"{{"version":"2.1.0","inlineExternalProperties":[{guid},"results":[{results}]}}],"runs":[{{"tool":{{"driver":{{"name":"t"}}}},"externalPropertyFileReferences":{{"results":[{references}]}}}}]}}"#
    )
}

/// Real files, where they are.
fn corpus() -> Option<PathBuf> {
    let named = std::env::var_os("ASSURANCE_CORPUS").map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    Some(named.unwrap_or_else(beside)).filter(|folder| folder.is_dir())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, Ok(about)) = (entry.path(), entry.metadata()) else { continue };
        if about.is_dir() {
            collect(&path, files);
        } else if about.len() <= MOST_BYTES {
            files.push(path);
        }
    }
}
