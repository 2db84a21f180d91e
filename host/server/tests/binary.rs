//! Smoke tests of the binary without a database.
//!
//! They also make `cargo test` build `assurance` with the features that the tests need; the
//! end-to-end tests in `tests/` execute it.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn assurance(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_assurance")).args(arguments).output().expect("an exit")
}

#[test]
fn the_version_is_the_package_s_and_names_the_commit_of_a_checkout() {
    let output = assurance(&["--version"]);
    let printed = String::from_utf8_lossy(&output.stdout);
    let expected = concat!("assurance ", env!("CARGO_PKG_VERSION"));
    let rest = printed.strip_prefix(expected).unwrap_or_else(|| panic!("{printed}"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let head = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(&root).output();
    let head = head.ok().filter(|head| head.status.success() && root.join(".git").exists());
    let Some(head) = head else { return assert_eq!(rest, "\n") };
    let commit = rest.strip_prefix(" (").and_then(|rest| rest.strip_suffix(")\n"));
    let commit = commit.unwrap_or_else(|| panic!("{printed}"));
    let head = String::from_utf8_lossy(&head.stdout);
    assert!(commit.len() >= 9 && head.starts_with(commit), "{printed}{head}");
}

#[test]
fn every_shell_gets_completions_that_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let output = assurance(&["completions", shell]);
        let script = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{shell}");
        for word in ["rollback", "dry-run", "completions"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
}

/// Runs `config check` on a configuration that it refuses. Returns the errors.
fn refused_configuration(text: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("assurance.toml");
    std::fs::write(&file, text).expect("written");
    let output = assurance(&["--config", &file.to_string_lossy(), "config", "check"]);
    assert!(!output.status.success(), "{text}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_misspelled_configuration_key_is_named() {
    let errors = refused_configuration("api.lissten = '127.0.0.1:0'");
    assert!(errors.contains("lissten"), "{errors}");
}

#[test]
fn values_that_only_their_use_can_check_are_checked_before_the_start() {
    for (text, key) in [
        ("keys.master_key = 'abc'", "keys.master_key"),
        ("egress.ca_file = '/etc/hostname'", "egress.ca_file"),
        ("mail.from = 'nobody'", "mail.from"),
    ] {
        let errors = refused_configuration(text);
        assert!(errors.contains(key), "{text}: {errors}");
    }
}

/// Returns the limits of the process's open files, soft and hard (proc(5)).
#[cfg(target_os = "linux")]
fn open_file_limits(pid: u32) -> Option<(String, String)> {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut values = files.split_whitespace().map(str::to_owned);
    Some((values.next()?, values.next()?))
}

#[cfg(target_os = "linux")]
#[test]
fn a_host_opens_as_many_files_as_the_hard_limit_allows() {
    let folder = tempfile::tempdir().expect("a folder");
    let serve = "ulimit -S -n 256 && exec \"$0\" serve --data-dir \"$1\" \
                 --listen 127.0.0.1:0 --operators-listen 127.0.0.1:0";
    let mut host = Command::new("sh");
    host.args(["-c", serve, env!("CARGO_BIN_EXE_assurance")]).arg(folder.path());
    let mut host = host.stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("a process");
    let begun = Instant::now();
    let limits = loop {
        let limits = open_file_limits(host.id());
        let raised = limits.as_ref().is_some_and(|(soft, hard)| soft != "256" && soft == hard);
        if raised || begun.elapsed() > Duration::from_secs(30) {
            break limits;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    host.kill().expect("it runs");
    host.wait().expect("an end");
    let (soft, hard) = limits.expect("limits");
    assert_eq!(soft, hard);
}
