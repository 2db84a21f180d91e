//! Names and words: a type name occurs in at most two files of the host, and comments and messages
//! use the field's terms.

use std::collections::BTreeMap;

use crate::check;
use crate::source::{Source, sources};

/// Names of common patterns. Each is private to its module or used with the module's name.
const PATTERNS: [&str; 5] = ["Command", "Error", "Inner", "Row", "Settings"];

/// Pairs of a word that comments and messages must not use, and its replacement.
const INSTEAD: [(&str, &str); 16] = [
    ("is told", "receives, is returned"),
    ("are told", "receive, are returned"),
    ("tells", "returns, reports, logs"),
    ("hears", "receives"),
    ("unheard", "discarded"),
    ("learns", "receives, reads"),
    ("beside", "with, next to"),
    ("nothing where", "`None` if"),
    ("nothing, where", "`None` if"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("wishes", "requests"),
    ("comes by", "finds"),
    ("overstays", "exceeds the time slice"),
    ("seldom", "the number"),
    ("lately", "the number"),
];

#[test]
fn no_type_name_of_the_host_stands_three_times() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in sources_of(&["host/"]) {
        for name in file.code().lines().filter_map(type_name) {
            places.entry(name.to_owned()).or_default().push(file.path.clone());
        }
    }
    let wrong: Vec<String> = places
        .into_iter()
        .filter(|(name, files)| files.len() > 2 && !PATTERNS.contains(&name.as_str()))
        .map(|(name, files)| format!("{name}: {}", files.join(", ")))
        .collect();
    check("type names that say nothing without their module", &wrong);
}

#[test]
fn comments_and_messages_use_the_field_s_words() {
    let mut wrong = Vec::new();
    for file in sources_of(&["host/", "guests/"]) {
        for (at, line) in file.text.lines().enumerate() {
            let text = prose(line).to_lowercase();
            let used = INSTEAD.iter().filter(|(word, _)| has_word(&text, word));
            wrong.extend(used.map(|(word, instead)| {
                format!("{}:{}: {word:?}; write {instead}", file.path, at + 1)
            }));
        }
    }
    check("words to replace", &wrong);
}

fn sources_of(folders: &[&str]) -> Vec<Source> {
    let mut files = sources(&["rs"]);
    files.retain(|file| folders.iter().any(|folder| file.path.starts_with(folder)));
    files
}

/// Returns the name that a top-level line of a module defines.
fn type_name(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub").map_or(line, |rest| {
        let rest =
            rest.strip_prefix('(').map_or(rest, |rest| rest.split_once(')').map_or("", |x| x.1));
        rest.trim_start()
    });
    let rest = ["struct ", "enum ", "trait ", "type ", "union "]
        .iter()
        .find_map(|keyword| line.strip_prefix(keyword))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// Returns the comment of a line, or the text in its quotes.
fn prose(line: &str) -> String {
    match line.split_once("//") {
        Some((code, comment)) if !code.contains('"') => comment.to_owned(),
        _ => line.split('"').skip(1).step_by(2).collect::<Vec<_>>().join(" "),
    }
}

fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

#[test]
fn the_checks_see_names_and_words() {
    assert_eq!(type_name("pub(super) struct Told<'a> {"), Some("Told"));
    assert_eq!(type_name("    struct Inner;"), None);
    assert_eq!(prose("    let x = 1; // beside it"), " beside it");
    assert_eq!(prose(r#"    say("who hears", 1, "it");"#), "who hears it");
    assert!(has_word("it stands beside it", "beside") && !has_word("besides", "beside"));
}
