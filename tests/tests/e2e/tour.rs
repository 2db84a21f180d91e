//! The README's tour, word for word: its shell lines are run in order, and the
//! contract's operations are all among them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use assurance_tests::{Backend, Builder, artifacts, place};

use crate::requests::AREAS;

/// What the README says, and what it is for this test's host.
const ADDRESS: &str = "http://127.0.0.1:8080";

fn readme() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    fs::read_to_string(file).expect("the README")
}

/// The tour's shell blocks, one after the other.
fn tour(readme: &str) -> String {
    let section = readme.split("\n## ").find(|section| section.starts_with("A tour"));
    let section = section.expect("a section of that name");
    let blocks = section.split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default()).collect()
}

/// The numbers that the tour's comments give to operations.
fn numbers(script: &str) -> Vec<u64> {
    let comments = script.lines().filter_map(|line| line.rsplit_once("# "));
    let leading = |comment: &str| {
        comment.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
    };
    let mut numbers: Vec<u64> = comments.filter_map(|(_, comment)| leading(comment)).collect();
    numbers.sort_unstable();
    numbers
}

/// A folder in which the tour's paths lead where they should.
fn stage(folder: &Path) -> PathBuf {
    let stage = folder.join("tour");
    fs::create_dir_all(stage.join("target/debug")).expect("a folder");
    fs::create_dir_all(stage.join("tests")).expect("a folder");
    symlink(place::binary(), stage.join("target/debug/assurance")).expect("a link");
    symlink(artifacts::samples(), stage.join("tests/samples")).expect("a link");
    symlink(folder.join("data"), stage.join("data")).expect("a link");
    stage
}

#[tokio::test]
async fn the_tour_names_every_operation_and_runs_as_it_is_written() {
    let script = tour(&readme());
    assert_eq!(numbers(&script), (1..=22).collect::<Vec<u64>>());
    let host = Builder::new(Backend::Sqlite).areas(AREAS).argument("--demo").start().await;
    let script = script.replace(ADDRESS, &host.api);
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", &script]).current_dir(stage(host.folder()));
    let run = tokio::task::spawn_blocking(move || bash.output()).await.expect("no panic");
    let output = run.expect("bash");
    let (said, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}\n{said}");
    assert!(said.contains(r#""replayed":true"#), "{said}");
}
