//! Checks folders whose files must not depend on each other in cycles, so that they can be read in
//! one order.

use std::collections::{BTreeMap, BTreeSet};

use crate::check;
use crate::source::{Source, sources};

const FOLDERS: [&str; 1] = ["host/service/src/app/areas/"];

#[test]
fn the_files_of_these_folders_have_no_cycle() {
    let mut wrong = Vec::new();
    for folder in FOLDERS {
        let mut left = uses(folder, &sources(&["rs"]));
        let leaf = |left: &BTreeMap<String, BTreeSet<String>>| {
            let uses_nothing =
                |used: &BTreeSet<String>| used.iter().all(|to| !left.contains_key(to));
            left.iter().find(|(_, used)| uses_nothing(used)).map(|(name, _)| name.clone())
        };
        while let Some(name) = leaf(&left) {
            left.remove(&name);
        }
        wrong.extend(left.iter().map(|(name, used)| format!("{folder}{name}.rs uses {used:?}")));
    }
    check("files in a cycle", &wrong);
}

/// Returns the files of the folder that each of its files uses. `mod.rs` uses all of them, so no
/// file may use a name that `mod.rs` only re-exports.
fn uses(folder: &str, sources: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    let name =
        |file: &Source| file.path.strip_prefix(folder)?.strip_suffix(".rs").map(str::to_owned);
    let files: BTreeMap<String, String> = sources
        .iter()
        .filter_map(|file| Some((name(file).filter(|name| !name.contains('/'))?, file.code())))
        .collect();
    assert!(files.len() > 1, "no files in {folder}");
    let known = |used: String| if files.contains_key(&used) { used } else { "mod".to_owned() };
    let of = |(name, code): (&String, &String)| match name.as_str() {
        "mod" => ("mod".to_owned(), files.keys().filter(|name| *name != "mod").cloned().collect()),
        _ => (name.clone(), siblings(code).into_iter().map(known).collect()),
    };
    files.iter().map(of).collect()
}

/// Returns the names that directly follow `super::` in the code.
fn siblings(code: &str) -> Vec<String> {
    let code: String = code.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    for (at, word) in code.match_indices("super::") {
        let rest = &code[at + word.len()..];
        if code[..at].ends_with("::") || rest.starts_with("super::") {
            continue;
        }
        let group = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let names = group.map_or(rest, |(names, _)| names).split(',');
        let names = names.map(|name| {
            let name = name.trim_start();
            name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
        });
        let wanted = if group.is_some() { usize::MAX } else { 1 };
        found.extend(names.take(wanted).filter(|name| !name.is_empty()).map(str::to_owned));
    }
    found
}

#[test]
fn the_check_sees_what_follows_super() {
    let code = "use super::super::App;\nuse super::error::Error;\nuse super::{load, rows};\n\
                let x = super::plan::plan(1, super::Two);";
    assert_eq!(siblings(code), ["error", "load", "rows", "plan", "Two"]);
}
