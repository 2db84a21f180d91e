//! Runs the shell lines of the documents as written: the tour of the API, which has every operation
//! of the contract, and the short one in the README.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use assurance_tests::{Backend, Builder, TestHost, artifacts, place, within};

use crate::requests::AREAS;

/// Maximum time until the demonstration has written its variables.
const DEMO_LIMIT: Duration = Duration::from_secs(30);

fn document(path: &str) -> String {
    fs::read_to_string(place::repository().join(path)).expect("a document")
}

/// Returns the shell blocks of a document, in order.
fn shell_lines(document: &str) -> String {
    let blocks = document.split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default()).collect()
}

/// Returns the shell blocks of one section of the README.
fn section_lines(title: &str) -> String {
    let readme = document("README.md");
    let section = readme.split("\n## ").find(|section| section.starts_with(title));
    shell_lines(section.expect("a section with this title"))
}

/// Returns the numbers of operations in the comments of the tour.
fn numbers(script: &str) -> Vec<u64> {
    let comments = script.lines().filter_map(|line| line.rsplit_once("# "));
    let leading = |comment: &str| {
        comment.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
    };
    let mut numbers: Vec<u64> = comments.filter_map(|(_, comment)| leading(comment)).collect();
    numbers.sort_unstable();
    numbers
}

/// Creates a folder in which the relative paths of the documents exist.
fn stage(folder: &Path) -> PathBuf {
    let stage = folder.join("tour");
    fs::create_dir_all(stage.join("target/debug")).expect("a folder");
    fs::create_dir_all(stage.join("tests")).expect("a folder");
    symlink(place::binary(), stage.join("target/debug/assurance")).expect("a link");
    symlink(artifacts::samples(), stage.join("tests/samples")).expect("a link");
    symlink(folder.join("data"), stage.join("data")).expect("a link");
    stage
}

/// Runs the lines with bash where the demonstration is, in a folder laid out like the repository.
/// Returns their output.
async fn run(host: &TestHost, script: String) -> String {
    let variables = host.folder().join("data/demo.env");
    let what = format!("the demonstration writes {}", variables.display());
    within(DEMO_LIMIT, what, async || variables.exists()).await;
    let mut bash = Command::new("bash");
    bash.current_dir(stage(host.folder()));
    run_lines(bash, script).await
}

async fn run_lines(mut bash: Command, script: String) -> String {
    bash.args(["-euo", "pipefail", "-c", &script]);
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
    assert!(!printed.contains("/content?signature="), "a signed URL is printed: {printed}");
}

#[tokio::test]
async fn the_six_calls_of_the_readme_run_as_they_are_written() {
    let script = section_lines("A tour");
    let host = Builder::new(Backend::Sqlite).areas(AREAS).argument("--demo").start().await;
    let printed = run(&host, script).await;
    assert!(printed.contains("idempotent-replayed: true"), "{printed}");
    assert!(printed.contains(r#""code":"validation_failed""#), "{printed}");
}

#[tokio::test]
async fn a_pipeline_uploads_and_audits_with_an_access_token_as_the_guide_says() {
    let builder = Builder::new(Backend::Sqlite).areas(AREAS);
    let (mut host, ada) = builder.start_with_owner().await;
    let repository = ada.repository("shop").await;
    let arguments = ["access-token", "create", "--workspace", "first", "--name", "pipeline"];
    let rest = ["--user", "ada@example.org", "--role", "member", "--days", "1"];
    let created = host.cli(&[&arguments[..], &rest[..]].concat());
    let token = created["token"].as_str().expect("a token");
    host.keep_secret(token);
    let bash = |folder: &Path| {
        let mut bash = Command::new("bash");
        bash.current_dir(folder);
        bash.envs([("API", host.api.as_str()), ("WORKSPACE_ID", &ada.workspace)]);
        bash.envs([("REPOSITORY_ID", repository.as_str()), ("ASSURANCE_TOKEN", token)]);
        bash
    };
    let script = shell_lines(&document("host/docs/uploads.md"));
    let printed = run_lines(bash(&artifacts::samples()), script.clone()).await;
    assert!(!printed.contains("/content?signature="), "a signed URL is printed: {printed}");
    let findings = ada.get("/v1/workspaces/{ws}/findings?limit=1").await.expect(200);
    assert_eq!(findings["items"].as_array().map(Vec::len), Some(1), "{findings}");
    // Of two SARIF files, the audit refuses one: it completes with an error.
    let script = script.replace("upload shop.sarif", "upload other.sarif");
    for (sarif, code) in [
        (r#"{"version": "2.1.0", "runs": ["#, "malformed_json"),
        (r#"{"version": "2.1.0", "runs": [{}]}"#, "sarif_tool_missing"),
    ] {
        fs::write(host.folder().join("other.sarif"), sarif).expect("a file");
        let output = bash(host.folder()).args(["-c", &script]).output().expect("bash");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(code), "{errors}");
    }
}

/// Returns the commands that `serve --demo` prints, from the log.
async fn next_steps(host: &TestHost) -> String {
    host.wait_for_log("support/cases", DEMO_LIMIT).await;
    let log = host.log();
    let printed = log.split("sh, bash or zsh:\n").nth(1).expect("the next steps");
    printed
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with(' '))
        .fold(String::new(), |lines, line| lines + line + "\n")
}

#[tokio::test]
async fn the_lines_that_the_demonstration_prints_work_as_typed() {
    let host = Builder::new(Backend::Sqlite).areas(&["support"]).argument("--demo").start().await;
    let script = next_steps(&host).await;
    assert_eq!(script.matches("curl").count(), 2, "{script}");
    for shell in ["sh", "bash"] {
        let output = Command::new(shell).args(["-euc", &script]).current_dir("/").output();
        let output = output.expect("a shell");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(printed.contains("demo@example.com") && printed.contains("Hello"), "{printed}");
    }
}

#[tokio::test]
async fn the_demonstration_leaves_out_what_needs_a_missing_area() {
    let builder = Builder::new(Backend::Sqlite).areas(&["webhooks"]).argument("--demo");
    let host = builder.start().await;
    host.wait_for_log("missing areas   evidence, support; ", DEMO_LIMIT).await;
    let script = ". data/demo.env; curl -sS -b \"$DEMO_COOKIE\" $DEMO_API/v1/auth/session";
    let told = run(&host, script.to_owned()).await;
    assert!(told.contains("demo@example.com"), "{told}");
}

#[tokio::test]
async fn the_session_of_the_demonstration_lasts_and_a_command_renews_it() {
    let builder = Builder::new(Backend::Sqlite).areas(&["support"]).argument("--demo");
    let builder = builder.set("session.absolute_hours", 1).set("session.idle_minutes", 1);
    let host = builder.start().await;
    next_steps(&host).await;
    let variables = || fs::read_to_string(host.folder().join("data/demo.env")).expect("variables");
    let before = variables();
    let renewed = host.cli(&["demo", "session"]);
    let after = variables();
    assert_ne!(before, after);
    assert!(after.contains(renewed["cookie"].as_str().expect("a cookie")), "{renewed}");
    assert!(after.contains(&format!("DEMO_API='{}'", host.api)), "{after}");
    let script = ". data/demo.env; curl -sS -b \"$COOKIE\" $DEMO_API/v1/auth/security";
    let told = run(&host, script.to_owned()).await;
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let ends = told["sessions"].as_array().expect("sessions").iter().map(|one| &one["expires_at"]);
    let years: Vec<i32> = ends
        .map(|end| end.as_str().and_then(|end| end[..4].parse().ok()).expect("a year"))
        .collect();
    assert!(!years.is_empty() && years.iter().all(|year| *year > 2030), "{years:?}");
}
