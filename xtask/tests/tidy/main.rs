//! The promises of ARCHITECTURE.md that text can show: who may know which
//! library, which module may use which, and how files and documents look.
//!
//! Each check gathers everything that is wrong before it fails, so that one
//! run tells the whole story.

mod contract;
mod documents;
mod layers;
mod source;

use std::collections::BTreeMap;

use source::{Source, root, sources};

/// A library and the only places that may name it.
const WALLS: [(&str, &[&str]); 7] = [
    ("axum", &["host/src/http/", "tests/src/"]),
    ("sqlx", &["host/src/store/", "tests/src/", "tests/database/"]),
    ("lettre", &["host/src/mail/"]),
    ("object_store", &["host/src/store/"]),
    ("oci_client", &["host/src/oci/"]),
    ("wasmtime", &["host/src/runtime/"]),
    ("ed25519_dalek", &["host/src/signing.rs", "guests/sdk/src/testing/"]),
];

/// Long enough for any one thing; a longer file is two things.
const MAX_LINES: usize = 500;

fn check(what: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{what}:\n  {}", wrong.join("\n  "));
}

#[test]
fn each_library_stays_behind_its_wall() {
    let mut wrong = Vec::new();
    for file in sources(&["rs"]).iter().filter(|file| !file.path.starts_with("xtask/")) {
        for (library, places) in WALLS {
            let inside = places.iter().any(|place| file.path.starts_with(place));
            if !inside && names_library(&file.code(), library) {
                wrong.push(format!("{} names {library}, which lives in {places:?}", file.path));
            }
        }
    }
    check("walls", &wrong);
}

/// Whether code uses a path that begins with the crate, or its family's.
fn names_library(code: &str, library: &str) -> bool {
    code.match_indices(library).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let starts = !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '"');
        let rest = code[at + library.len()..]
            .trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
        starts
            && (rest.starts_with("::") || rest.starts_with(" as ") || rest.starts_with(';'))
            && !code[..at].ends_with("::")
    })
}

#[test]
fn a_module_of_the_host_imports_only_from_below() {
    let wrong: Vec<String> = sources(&["rs"]).iter().flat_map(layers::violations).collect();
    check("layers", &wrong);
}

#[test]
fn every_file_begins_by_saying_what_it_is_for() {
    let mut wrong = Vec::new();
    for file in sources(&["rs", "sql", "toml"]) {
        let opening = match file.extension() {
            "rs" => "//!",
            "sql" => "--",
            // A package says it in its description.
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
        .into_keys()
        .filter(|name| !tests.iter().any(|file| file.text.contains(&format!("\"{name}\""))))
        .map(|name| format!("guests/fixtures/{name} is named by no test"))
        .collect();
    check("fixtures", &wrong);
}

/// The folders of fixtures that become components, with their manifests.
fn fixtures() -> BTreeMap<String, String> {
    let folders = std::fs::read_dir(root().join("guests/fixtures")).into_iter().flatten();
    folders
        .flatten()
        .filter_map(|folder| {
            let manifest = std::fs::read_to_string(folder.path().join("Cargo.toml")).ok()?;
            Some((folder.file_name().into_string().ok()?, manifest))
        })
        .filter(|(_, manifest)| manifest.contains("cdylib"))
        .collect()
}

#[test]
fn the_wall_check_sees_paths_and_nothing_else() {
    assert!(names_library("use sqlx::Row;", "sqlx"));
    assert!(names_library("let x: wasmtime_wasi::WasiCtx = y;", "wasmtime"));
    assert!(names_library("use axum as web;", "axum"));
    assert!(!names_library("let x = crate::store::sqlx::y;", "sqlx"));
    assert!(!names_library("let my_axum = 1; f(my_axum)", "axum"));
}
