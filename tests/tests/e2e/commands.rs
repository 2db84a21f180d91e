//! Commands whose output goes nowhere: a reader that has gone, a full disk.

use std::process::{Command, Output, Stdio};

use assurance_tests::{Backend, Builder, TestHost};

/// A command whose reader has gone before it prints.
fn unread(mut command: Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    drop(child.stdout.take());
    child.wait_with_output().expect("its end")
}

fn commands(host: &TestHost) -> [Command; 4] {
    let list = host.command(&["area", "list"]);
    let config = host.command(&["config", "show"]);
    let session = host.command(&["session", "create", "--user", "ada@example.org"]);
    let logs = host.command(&["area", "logs", "support", "--json"]);
    [list, config, session, logs]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_reader_has_gone_ends_as_by_sigpipe() {
    let (host, _) = Builder::new(Backend::Sqlite).areas(&["support"]).start_with_owner().await;
    for command in commands(&host) {
        let shown = format!("{command:?}");
        let output = unread(command);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(errors, "", "{shown}");
        assert_eq!(output.status.code(), Some(141), "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_cannot_write_says_why() {
    let (host, _) = Builder::new(Backend::Sqlite).areas(&["support"]).start_with_owner().await;
    for mut command in commands(&host) {
        let shown = format!("{command:?}");
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a device");
        let output = command.stdout(full).stderr(Stdio::piped()).output().expect("its end");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("standard output cannot be written: "), "{shown}: {errors}");
        assert_eq!(output.status.code(), Some(1), "{shown}: {errors}");
    }
}
