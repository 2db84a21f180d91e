//! The shell lines of the documents run as they are written: the tour of the
//! API, which has every operation of the contract, and the README's short one.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use assurance_tests::{Backend, Builder, TestHost, artifacts, place};

use crate::requests::AREAS;

/// Time in which the demonstration must have written its variables.
const DEMO_LIMIT: Duration = Duration::from_secs(30);

fn document(path: &str) -> String {
    fs::read_to_string(place::repository().join(path)).expect("a document")
}

/// The shell blocks of a document, in order.
fn shell_lines(document: &str) -> String {
    let blocks = document.split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default()).collect()
}

/// The shell blocks of one section of the README.
fn section_lines(title: &str) -> String {
    let readme = document("README.md");
    let section = readme.split("\n## ").find(|section| section.starts_with(title));
    shell_lines(section.expect("a section with this title"))
}

/// The numbers of operations in the comments of the tour.
fn numbers(script: &str) -> Vec<u64> {
    let comments = script.lines().filter_map(|line| line.rsplit_once("# "));
    let leading = |comment: &str| {
        comment.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
    };
    let mut numbers: Vec<u64> = comments.filter_map(|(_, comment)| leading(comment)).collect();
    numbers.sort_unstable();
    numbers
}

/// A folder in which the relative paths of the documents exist.
fn stage(folder: &Path) -> PathBuf {
    let stage = folder.join("tour");
    fs::create_dir_all(stage.join("target/debug")).expect("a folder");
    fs::create_dir_all(stage.join("tests")).expect("a folder");
    symlink(place::binary(), stage.join("target/debug/assurance")).expect("a link");
    symlink(artifacts::samples(), stage.join("tests/samples")).expect("a link");
    symlink(folder.join("data"), stage.join("data")).expect("a link");
    stage
}

/// Runs the lines with bash in a folder laid out as the repository is; returns
/// their output.
async fn run(host: &TestHost, script: String) -> String {
    let variables = host.folder().join("data/demo.env");
    let begun = Instant::now();
    while !variables.exists() {
        assert!(begun.elapsed() < DEMO_LIMIT, "the demonstration wrote no {}", variables.display());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", &script]).current_dir(stage(host.folder()));
    let run = tokio::task::spawn_blocking(move || bash.output()).await.expect("no panic");
    let output = run.expect("bash");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\n{printed}");
    printed
}

#[tokio::test]
async fn the_tour_calls_every_operation_and_runs_as_it_is_written() {
    let script = shell_lines(&document("host/docs/tour.md"));
    assert_eq!(numbers(&script), (1..=22).collect::<Vec<u64>>());
    let host = Builder::new(Backend::Sqlite).areas(AREAS).argument("--demo").start().await;
    let printed = run(&host, script).await;
    assert!(printed.contains(r#""replayed":true"#), "{printed}");
}

#[tokio::test]
async fn the_six_calls_of_the_readme_run_as_they_are_written() {
    let script = section_lines("A tour");
    let host = Builder::new(Backend::Sqlite).areas(AREAS).argument("--demo").start().await;
    let printed = run(&host, script).await;
    assert!(printed.contains("idempotent-replayed: true"), "{printed}");
    assert!(printed.contains(r#""code":"validation_failed""#), "{printed}");
}
