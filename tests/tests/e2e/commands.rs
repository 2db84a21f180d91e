//! Output of commands: tables for people, JSON for programs, and the behavior
//! if the output cannot be written (closed pipe, full disk).

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use assurance_tests::{Backend, Builder, TestHost, place};
use rustix::process::Signal;

/// Runs a command whose standard output is closed before it prints.
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
async fn a_command_tells_of_output_that_it_cannot_write() {
    let (host, _) = Builder::new(Backend::Sqlite).areas(&["support"]).start_with_owner().await;
    a_command_whose_reader_has_gone_ends_as_by_sigpipe(&host);
    a_command_that_cannot_write_says_why(&host);
}

fn a_command_whose_reader_has_gone_ends_as_by_sigpipe(host: &TestHost) {
    for command in commands(host) {
        let shown = format!("{command:?}");
        let output = unread(command);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(errors, "", "{shown}");
        assert_eq!(output.status.code(), Some(141), "{shown}");
    }
}

fn a_command_that_cannot_write_says_why(host: &TestHost) {
    for mut command in commands(host) {
        let shown = format!("{command:?}");
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a device");
        let output = command.stdout(full).stderr(Stdio::piped()).output().expect("its end");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("standard output cannot be written: "), "{shown}: {errors}");
        assert_eq!(output.status.code(), Some(1), "{shown}: {errors}");
    }
}

/// Runs a command. Returns its text on standard output and on standard error.
fn printed(host: &TestHost, arguments: &[&str]) -> (String, String) {
    let output = host.command(arguments).output().expect("the binary starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_read_tables_and_programs_read_json() {
    let (host, ada) = Builder::new(Backend::Sqlite).areas(&["support"]).start_with_owner().await;
    ada.get("/v1/workspaces/{ws}/support/cases").await.expect(200);
    let deploy = ["area", "deploy", "areas/support.wasm", "--activate", "--message", "Release 7"];
    let deployed = host.cli(&deploy);
    assert_eq!(deployed["nodes"], 1, "{deployed}");
    assert_eq!(deployed["verdict"], "safe", "{deployed}");

    let (list, errors) = printed(&host, &["area", "list"]);
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 2, "{list}{errors}");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let columns = ["NAME", "VERSION", "DIGEST", "NODES", "TRIAL", "REQ", "ERR%", "SINCE", "BY"];
    assert_eq!(words(lines[0]), columns);
    let digest = &deployed["digest"].as_str().expect("a digest")[..12];
    let row = words(lines[1]);
    assert_eq!([&row[0], &row[2], &row[3]], ["support", digest, "1/1"], "{list}");
    assert_eq!([&row[5], &row[6]], ["1", "0.0"], "{list}");
    assert_eq!(row.last().map(String::as_str), Some("operators.token"), "{list}");

    let (status, _) = printed(&host, &["area", "status", "support"]);
    let (history, _) = printed(&host, &["area", "history", "support"]);
    for (text, expected) in [
        (&status, &["live:", "requests: 1 on this node", "NODE", "running", digest][..]),
        (&history, &["STAGE", "live", digest, "Release 7"]),
    ] {
        assert!(text.lines().count() < 20, "{text}");
        for expected in expected {
            assert!(text.contains(expected), "no {expected:?} in {text}");
        }
    }
    let (diff, _) = printed(&host, &["area", "diff", "support", digest]);
    assert!(diff.contains("verdict:") && diff.contains("safe"), "{diff}");

    assert_eq!(host.cli(&["area", "list"])["areas"][0]["name"], "support");
    assert_eq!(host.cli(&["area", "status", "support"])["nodes"][0]["state"], "running");
    assert_eq!(host.cli(&["area", "history", "support"])["items"][0]["stage"], "live");
    host.cli(&["token", "create", "--name", "ci", "--scope", "read", "--scope", "deploy"]);
    let (tokens, _) = printed(&host, &["token", "list"]);
    assert!(tokens.starts_with("NAME") && tokens.contains("read, deploy"), "{tokens}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hints_at_the_command_line_are_commands() {
    let host = Builder::new(Backend::Sqlite).areas(&["support"]).start().await;
    let support = "areas/support.wasm";
    for (arguments, expected) in [
        (&["area", "status", "nothing"][..], "`assurance area list`"),
        (&["area", "logs", "nothing"], "`assurance area list`"),
        (
            &["area", "activate", "support", "--digest", "abcdef"],
            "`assurance area history support`",
        ),
        (&["area", "deploy", support, "--area", "other"], "`--area support`"),
        (&["area", "list", "--token", "wrong"], "`assurance token create`"),
        (&["area", "canary", "support", "--digest", "0.1.0", "--share", "101"], "0 to 100"),
    ] {
        let (_, errors) = printed(&host, arguments);
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
        for word in ["openapi", "PUT /", "/areas/", "Retry-After", "Correct what"] {
            assert!(!errors.contains(word), "{arguments:?}: {errors}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_is_checked_in_a_process_with_limits() {
    let host = Builder::new(Backend::Sqlite).prepare().await;
    let file = place::areas().join("queue.wasm");
    let check = ["area", "check", file.to_str().expect("a path")];
    assert_eq!(host.cli(&check)["area"], "queue");
    host.configure(&[("runtime.max_compile_memory_bytes", 20_000_000.into())]);
    let (_, errors) = printed(&host, &check);
    assert!(errors.contains("runtime.max_compile_memory_bytes"), "{errors}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_is_compared_with_the_live_version_if_there_is_one() {
    let host = Builder::new(Backend::Sqlite).areas(&["support"]).start().await;
    let check = |name: &str| {
        let file = place::areas().join(name);
        host.cli(&["area", "check", file.to_str().expect("a path"), "--live"])
    };
    let known = check("support.wasm");
    assert_eq!((&known["area"], &known["against"]), (&"support".into(), &known["version"]));
    let new = check("queue.wasm");
    assert_eq!((&new["area"], new["against"].is_null()), (&"queue".into(), true));
    assert!(new.get("against").is_some() && new.get("verdict").is_none(), "{new}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_names_the_keys_it_applied_and_those_that_need_a_restart() {
    let host = Builder::new(Backend::Sqlite).start().await;
    assert!(host.log().contains(r#""listen":"127.0.0.1:"#), "{}", host.log());
    host.configure(&[
        ("budgets.warn_percent", 70.into()),
        ("log.filter", "debug".into()),
        ("areas.limits.support.max_documents", 7.into()),
    ]);
    host.signal(Signal::HUP);
    host.wait_for_log("reload applied", Duration::from_secs(20)).await;
    let log = host.log();
    assert!(log.contains(r#""applied":"budgets.warn_percent""#), "{log}");
    let restart = r#""restart_required":"areas.limits.support.max_documents, log.filter""#;
    assert!(log.contains(restart), "{log}");
}
