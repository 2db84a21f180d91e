//! Checks the length of documents and their references to files and sections.

use std::collections::BTreeSet;

use crate::check;
use crate::source::{Source, read, root, sources};

const README_BYTES: usize = 6 * 1024;
const ARCHITECTURE_WORDS: usize = 2_000;
/// Maximum length of a paragraph in characters: five lines of 120.
const PARAGRAPH_CHARS: usize = 600;
const GLOSSARY_TERMS: usize = 25;

/// Folders in which every path in backticks must exist.
const FOLDERS: [&str; 8] =
    [".ci/", ".github/", "guests/", "host/", "migrations/", "tests/", "wit/", "xtask/"];
/// Extensions of other paths in backticks that must exist.
const ENDINGS: [&str; 7] = [".js", ".md", ".py", ".rs", ".sql", ".toml", ".wit"];
/// Placeholders in paths. Only the folder before a placeholder must exist.
const PLACEHOLDERS: [&str; 3] = ["NAME", "TARGET", "X_Y"];

#[test]
fn the_readme_and_the_architecture_are_short() {
    let mut wrong = Vec::new();
    for file in sources(&["md"]) {
        let (found, most, unit) = match file.path.as_str() {
            "README.md" => (file.text.len(), README_BYTES, "bytes"),
            "ARCHITECTURE.md" => {
                (file.text.split_whitespace().count(), ARCHITECTURE_WORDS, "words")
            }
            _ => continue,
        };
        if found > most {
            wrong.push(format!("{} has {found} {unit}, {most} at most", file.path));
        }
    }
    check("lengths of documents", &wrong);
}

#[test]
fn a_paragraph_of_the_architecture_has_at_most_five_lines() {
    let text = prose(&read("ARCHITECTURE.md"));
    let long = text.lines().filter(|line| line.chars().count() > PARAGRAPH_CHARS);
    let wrong: Vec<String> = long.map(|line| line.chars().take(60).collect()).collect();
    check("paragraphs of ARCHITECTURE.md", &wrong);
}

#[test]
fn the_glossary_has_few_terms_in_order() {
    let text = read("ARCHITECTURE.md");
    let glossary = text.split("\n## Glossary\n").nth(1).expect("a glossary");
    let rows = glossary.lines().filter_map(|line| line.strip_prefix("| "));
    let terms: Vec<&str> = rows.skip(1).filter_map(|row| row.split(" |").next()).collect();
    assert!((1..=GLOSSARY_TERMS).contains(&terms.len()), "{} terms", terms.len());
    assert!(terms.is_sorted(), "{terms:?}");
}

#[test]
fn links_and_paths_in_documents_exist() {
    let mut wrong = Vec::new();
    for file in sources(&["md"]) {
        let text = prose(&file.text);
        let links = links(&text).into_iter().filter(|link| !leads_somewhere(&file, link));
        wrong.extend(links.map(|link| format!("{} links to {link}", file.path)));
        let paths = paths(&text).into_iter().filter(|path| !exists(&file, path));
        wrong.extend(paths.map(|path| format!("{} names {path}", file.path)));
    }
    check("references", &wrong);
}

/// Returns the text without blocks of code.
fn prose(text: &str) -> String {
    let parts = format!("\n{text}");
    let parts = parts.split("\n```").step_by(2);
    parts
        .map(|part| part.split_once('\n').map_or("", |(_, rest)| rest))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns link targets other than web addresses.
fn links(text: &str) -> BTreeSet<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target).filter(|target| !target.contains("://")).collect()
}

/// Returns paths in backticks that must exist.
fn paths(text: &str) -> BTreeSet<&str> {
    text.lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .filter(|word| word.contains('/') && !word.starts_with('/'))
        .filter(|word| word.chars().all(|c| c.is_ascii_alphanumeric() || "._/-".contains(c)))
        .filter(|word| {
            FOLDERS.iter().any(|folder| word.starts_with(folder))
                || ENDINGS.iter().any(|ending| word.ends_with(ending))
        })
        .map(before_placeholder)
        .collect()
}

/// Returns the path, or its part before the first component with a placeholder.
fn before_placeholder(path: &str) -> &str {
    let first = PLACEHOLDERS.iter().filter_map(|placeholder| path.find(placeholder)).min();
    first.map_or(path, |first| path[..first].rsplit_once('/').map_or("", |(folder, _)| folder))
}

/// Whether the path exists relative to the document's folder or to the repository.
fn exists(file: &Source, path: &str) -> bool {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    [folder, ""].iter().any(|from| root().join(from).join(path).exists())
}

fn leads_somewhere(file: &Source, link: &str) -> bool {
    let (path, section) = link.split_once('#').unwrap_or((link, ""));
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let target =
        if path.is_empty() { root().join(&file.path) } else { root().join(folder).join(path) };
    if section.is_empty() {
        return target.exists();
    }
    let text = std::fs::read_to_string(target).unwrap_or_default();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(anchor).any(|anchor| anchor == section)
}

/// Returns the anchor of a heading.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().replace(' ', "-")
}

#[test]
fn code_blocks_and_web_addresses_are_not_checked_and_placeholders_by_their_folder() {
    let text = "See [a](b.md#c) and [d](https://e).\n```sh\n[x](y)\n```\n`host/a.rs`, `work/b.rs`, \
                `wit/NAME.wit`, `wit/*.wit`, `/health/live`.\n";
    let text = prose(text);
    assert_eq!(links(&text), BTreeSet::from(["b.md#c"]));
    assert_eq!(paths(&text), BTreeSet::from(["host/a.rs", "wit", "work/b.rs"]));
    assert_eq!(anchor("## Keys and backup"), "keys-and-backup");
}

#[test]
fn every_metric_is_described_for_operators() {
    let guide = read("host/OPERATING.md");
    let mut wrong = Vec::new();
    for file in sources(&["rs"]).iter().filter(|file| file.path.starts_with("host/")) {
        let code = file.code();
        let names = code.split('"').filter(|text| is_metric(text));
        let missing = names.filter(|name| !guide.contains(&format!("`{name}`")));
        wrong.extend(missing.map(|name| format!("{} counts {name}", file.path)));
    }
    check("metrics missing in host/OPERATING.md", &wrong);
}

fn is_metric(text: &str) -> bool {
    (text.starts_with("assurance_") || text.starts_with("http_"))
        && ["_total", "_seconds", "_info", "_jobs"].iter().any(|unit| text.ends_with(unit))
        && text.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}
