//! Rules of ARCHITECTURE.md that source text can show: which package may use which library, and the
//! form of files and documents. Cargo enforces which crate may use which.
//!
//! Each check collects all violations before it fails.

mod alerts;
mod contract;
mod cycles;
mod documents;
mod source;
mod words;

use source::{Source, sources};

/// Pairs of a library and the only packages that may depend on it.
const WALLS: [(&str, &[&str]); 7] = [
    ("axum", &["host/server", "tests"]),
    ("sqlx", &["host/store", "tests", "tests/database", "xtask/peers"]),
    ("lettre", &["host/outside"]),
    ("object_store", &["host/store"]),
    ("oci-client", &["host/outside"]),
    ("wasmtime", &["host/runtime"]),
    ("ed25519-dalek", &["host/core", "guests/evidence", "guests/sdk"]),
];

/// Maximum number of lines of a file; a longer file should be split.
const MAX_LINES: usize = 500;

fn check(what: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{what}:\n  {}", wrong.join("\n  "));
}

#[test]
fn each_library_stays_behind_its_wall() {
    let mut wrong = Vec::new();
    for file in sources(&["toml"]) {
        let Some(package) = file.path.strip_suffix("/Cargo.toml") else { continue };
        for (library, places) in WALLS {
            let named = file.text.lines().any(|line| {
                let rest = line.strip_prefix(library).unwrap_or_default();
                rest.starts_with([' ', '.'])
            });
            if named && !places.contains(&package) {
                wrong.push(format!("{package} depends on {library}, which only {places:?} may"));
            }
        }
    }
    check("walls", &wrong);
}

#[test]
fn only_http_knows_the_web_framework() {
    let wrong: Vec<String> = sources(&["rs"])
        .iter()
        .filter(|file| file.path.starts_with("host/server/src/"))
        .filter(|file| !file.path.starts_with("host/server/src/http/"))
        .filter(|file| file.code().contains("axum::"))
        .map(|file| file.path.clone())
        .collect();
    check("axum outside of host/server/src/http", &wrong);
}

#[test]
fn every_file_begins_by_saying_what_it_is_for() {
    let mut wrong = Vec::new();
    for file in sources(&["rs", "sql", "toml"]) {
        let opening = match file.extension() {
            "rs" => "//!",
            "sql" => "--",
            // A package states its purpose in its description.
            _ if file.path.ends_with("Cargo.toml") => continue,
            _ => "#",
        };
        if !file.text.starts_with(opening) {
            wrong.push(format!("{} does not open with {opening}", file.path));
        }
    }
    check("openings", &wrong);
}

#[test]
fn no_file_is_longer_than_one_thing_needs() {
    let mut wrong = Vec::new();
    for file in sources(&["rs", "sql", "toml", "wit"]) {
        let lines = file.text.lines().count();
        if lines > MAX_LINES {
            wrong.push(format!("{} has {lines} lines, {MAX_LINES} at most", file.path));
        }
    }
    check("lengths", &wrong);
}

#[test]
fn every_fixture_guest_is_named_by_a_test() {
    let tests: Vec<Source> = sources(&["rs"])
        .into_iter()
        .filter(|file| file.path.starts_with("tests/") || file.path.starts_with("host/"))
        .collect();
    let wrong: Vec<String> = fixtures()
        .into_iter()
        .filter(|name| !tests.iter().any(|file| file.text.contains(&format!("\"{name}\""))))
        .map(|name| format!("guests/fixtures/{name} is named by no test"))
        .collect();
    check("fixtures", &wrong);
}

/// Returns the folders of fixtures that become components.
fn fixtures() -> Vec<String> {
    let manifests = sources(&["toml"]).into_iter().filter(|file| file.text.contains("cdylib"));
    let name = |file: Source| {
        let folder = file.path.strip_prefix("guests/fixtures/")?.strip_suffix("/Cargo.toml")?;
        Some(folder.to_owned())
    };
    manifests.filter_map(name).collect()
}
