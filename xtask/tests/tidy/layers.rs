//! Which module of the host may use which: each imports only from its own
//! layer and those below.

use crate::source::Source;

/// Top to bottom.
const LAYERS: &[&[&str]] = &[
    &["main", "cli"],
    &["serve"],
    &["http"],
    &["app"],
    &["registry", "jobs"],
    &["runtime"],
    &["work"],
    &["backup"],
    &["open"],
    &["oci"],
    &["identity", "egress", "mail", "malware"],
    &["store"],
    &["journal"],
    &["recordings"],
    &["budgets"],
    &["signing", "secrets", "links", "config", "telemetry", "turns", "domain"],
];

/// What is wrong in one file; nothing for files that are not the host's.
pub(crate) fn violations(file: &Source) -> Vec<String> {
    let Some(inner) = file.path.strip_prefix("host/src/") else { return Vec::new() };
    let module = inner.split(['/', '.']).next().unwrap_or_default();
    if module == "lib" {
        return Vec::new();
    }
    let Some(own) = layer(module) else {
        return vec![format!("{}: module {module} has no place in the layers", file.path)];
    };
    let mut used = imports(&file.code());
    used.sort();
    used.dedup();
    used.into_iter()
        .filter(|name| layer(name).is_some_and(|other| other < own))
        .map(|name| format!("{}: {module} uses {name}, which is above it", file.path))
        .collect()
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|names| names.contains(&module))
}

/// The host's modules that code names by `crate::` or `assurance::`, grouped
/// imports included.
fn imports(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for prefix in ["crate::", "assurance::"] {
        for (at, _) in code.match_indices(prefix) {
            let rest = &code[at + prefix.len()..];
            match rest.strip_prefix('{') {
                Some(group) => found.extend(heads(group)),
                None => found.push(identifier(rest)),
            }
        }
    }
    found
}

/// The first segment of each path in a group whose brace is already open.
fn heads(group: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut depth, mut fresh) = (0, true);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            c if fresh && c.is_alphabetic() => {
                found.push(identifier(&group[at..]));
                fresh = false;
            }
            _ => {}
        }
    }
    found
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn grouped_imports_are_seen_too() {
    let code = "use crate::{http::{a, b}, store};\nlet x = crate::app::App::new();";
    assert_eq!(imports(code), ["http", "store", "app"]);
}

#[test]
fn using_a_layer_above_is_told() {
    let text = "//! x\nuse crate::http::problem;\nuse crate::domain::id;\n".to_owned();
    let file = Source { path: "host/src/store/x.rs".to_owned(), text };
    assert_eq!(violations(&file), ["host/src/store/x.rs: store uses http, which is above it"]);
}
