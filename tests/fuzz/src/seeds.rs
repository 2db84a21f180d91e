//! Seeds: samples, files of the corpus, and former findings.

use std::fs;
use std::path::{Path, PathBuf};

use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, Resolve};

use crate::Target;

/// Maximum size of a seed in bytes; larger files make executions slow.
const MOST_BYTES: u64 = 100_000;
/// Maximum number of files for one target.
const MOST_FILES: usize = 300;

/// Returns the seeds of a target.
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
    if target.name == "component" {
        seeds.extend(components());
    }
    seeds
}

/// Returns components whose parts instantiate each other, and a component that
/// imports the whole contract.
fn components() -> Vec<Vec<u8>> {
    let texts = [
        r#"(component
            (component $a (core module $m (memory 1)) (core instance (instantiate $m)))
            (component $b (alias outer 1 $a (component $c)) (instance (instantiate $c))
                (alias outer 0 0 (component $d)) (export "d" (component $d)))
            (instance $i (instantiate $b)) (instance (instantiate $b)))"#,
        r#"(component
            (component $a (import "c" (component $c)) (instance (instantiate $c)))
            (component $b) (instance (instantiate $a (with "c" (component $b)))))"#,
        r#"(component
            (import "assurance:area/log@0.2.0" (instance (export "f" (func (param "a" string)))))
            (import "wasi:io/error@0.2.0" (instance (export "e" (type (sub resource)))))
            (type (record (field "a" (list u8)))))"#,
    ];
    let texts = texts.into_iter().filter_map(|text| wat::parse_str(text).ok());
    texts.chain(whole_contract()).collect()
}

/// Returns a component that imports every function of the contract; `None` if
/// it cannot be built.
fn whole_contract() -> Option<Vec<u8>> {
    let mut resolve = Resolve::default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
    let (package, _) = resolve.push_dir(folder).ok()?;
    let world = resolve.select_world(&[package], Some("area")).ok()?;
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Standard32);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).ok()?;
    ComponentEncoder::default().module(&module).ok()?.encode().ok()
}

/// Returns long inputs of former findings, which repeat one element.
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

/// Returns runs that all reference the same results.
fn references_to_one_list() -> String {
    let guid = r#"{"guid":"aaaaaaaa-0000-4000-8000-000000000001""#;
    let result = r#"{"ruleId":"A","message":{"text":"m"}}"#;
    let results = [result; 700].join(",");
    let references = vec![format!("{guid}}}"); 700].join(",");
    format!(
        r#"{{"version":"2.1.0","inlineExternalProperties":[{guid},"results":[{results}]}}],"runs":[{{"tool":{{"driver":{{"name":"t"}}}},"externalPropertyFileReferences":{{"results":[{references}]}}}}]}}"#
    )
}

/// Returns the folder of real files, if this machine has it.
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
