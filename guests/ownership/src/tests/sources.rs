//! Tests of ownership sources from audits.

use area_sdk::Uuid;
use area_sdk::testing::{FakeHost, Request};
use area_sdk::wit::Outcome;
use serde_json::{Value, json};

use super::*;

fn last_report(host: &FakeHost) -> Value {
    let events = host.events();
    let event = events.last().expect("an event");
    assert_eq!(event.name, "audit.ownership_imported");
    assert_eq!(event.data["audit_id"], json!(AUDIT));
    event.data.clone()
}

/// Runs an audit with these inputs, and returns its report.
fn report(host: &FakeHost, inputs: &[Value]) -> Value {
    start_audit(host, inputs);
    run_jobs(host);
    last_report(host)
}

fn source(host: &FakeHost) -> Value {
    let page = host.call(Request::to("list_ownership_sources")).expect("a page").body;
    page["items"][0].clone()
}

#[test]
fn rules_are_held_against_the_path_list() {
    let host = host();
    let file = "* @all\n/gone/ @x\n/free/\nbad owner\n";
    let paths = "./src/a.rs\r\n\n/free/b\nREADME\n";
    let inputs = [
        input(&host, "code_owners", ".github/CODEOWNERS", file),
        input(&host, "path_list", "p", paths),
    ];
    let told = report(&host, &inputs);
    assert_eq!(told["status"], "succeeded");
    assert_eq!(told["facts"], json!({ "rules": 3, "paths": 3, "unowned": 1 }));
    assert_eq!(told["counts"], told["facts"]);
    assert_eq!(
        told["warnings"],
        json!(["Line 2: `/gone/` matches no path", "Line 4: skipped: `owner` is not an owner"])
    );
    let source = source(&host);
    assert_eq!(source["source_status"], "available");
    assert_eq!(source["dialect"], "github");
    assert_eq!(source["source_path"], ".github/CODEOWNERS");
    assert_eq!(source["imported_at"], json!(host.now()));
    assert_eq!(host.blobs(), [format!("codeowners/{:064x}", file.len())]);
}

#[test]
fn names_that_git_quotes_are_read_as_they_are() {
    let host = host();
    let paths = "\"docs/\\303\\274ber \\\"x\\\".md\"\r\n\"a\\tb\"\n\"bad\\q\"\n\"\n";
    let inputs = [
        input(&host, "code_owners", "CODEOWNERS", "/docs/über* @a\na?b @b\n"),
        input(&host, "path_list", "p", paths),
    ];
    let told = report(&host, &inputs);
    assert_eq!(told["facts"], json!({ "rules": 2, "paths": 4, "unowned": 2 }));
    assert_eq!(told["warnings"], json!([]));
}

#[test]
fn a_byte_order_mark_is_not_part_of_the_first_path() {
    let host = host();
    let inputs = [
        input(&host, "code_owners", "CODEOWNERS", "\u{feff}/a @a\n"),
        input(&host, "path_list", "p", "\u{feff}a\r\nb\r\n"),
    ];
    let told = report(&host, &inputs);
    assert_eq!(told["facts"], json!({ "rules": 1, "paths": 2, "unowned": 1 }));
    assert_eq!(told["warnings"], json!([]));
}

#[test]
fn what_is_called_codeowners_comes_before_what_is_not() {
    let host = host();
    let inputs = [
        input(&host, "code_owners", ".github/rules.txt", "* @rules\n"),
        input(&host, "code_owners", ".github/web.CODEOWNERS", "* @copied\n"),
        input(&host, "code_owners", "docs/CODEOWNERS", "* @owners\n"),
        input(&host, "path_list", "p", "a\n"),
    ];
    let told = report(&host, &inputs);
    assert_eq!(source(&host)["source_path"], "docs/CODEOWNERS");
    assert_eq!(
        told["warnings"],
        json!([
            ".github/web.CODEOWNERS is not read: docs/CODEOWNERS has the better name. Give the \
             file that counts the name CODEOWNERS.",
            ".github/rules.txt is not read: docs/CODEOWNERS has the better name. Give the file \
             that counts the name CODEOWNERS.",
        ])
    );
}

#[test]
fn a_long_path_list_is_read_in_steps() {
    let host = host();
    let paths: String = (0..60_000).map(|n| format!("src/some/folder/file-{n}.rs\n")).collect();
    let inputs = [
        input(&host, "code_owners", "CODEOWNERS", "*.rs @a\n"),
        input(&host, "path_list", "p", &paths),
    ];
    start_audit(&host, &inputs);
    assert!(run_jobs(&host) > 3);
    assert_eq!(last_report(&host)["facts"], json!({ "rules": 1, "paths": 60_000, "unowned": 0 }));
}

#[test]
fn without_a_path_list_the_findings_paths_count() {
    let host = host();
    finding(&host, 1, &["src/a.rs", "docs/b"], None);
    finding(&host, 2, &["src/a.rs"], None);
    start_audit(&host, &[input(&host, "code_owners", "CODEOWNERS", "*.rs @a\n*.rs @b\n")]);
    let late = host.take_jobs();
    assert_eq!(late[0].available_at, Some(host.now().plus_seconds(240)), "it waits for findings");
    assert!(matches!(findings_imported(&host), Outcome::Done));
    run_jobs(&host);
    let first = last_report(&host);
    assert_eq!(first["facts"], json!({ "rules": 2, "paths": 2, "unowned": 1 }));
    let warnings = first["warnings"].as_array().expect("warnings");
    assert_eq!(warnings[1], "Line 1: `*.rs` is hidden by line 2");
    // The delayed job finds the work done.
    assert!(matches!(host.run(&late[0].kind, late[0].payload.clone(), 1), Ok(Outcome::Done)));
    assert_eq!(host.events().len(), 1);
}

#[test]
fn findings_that_come_long_before_their_audit_are_not_waited_for_again() {
    let host = host();
    for _ in 0..2 {
        assert!(matches!(findings_imported(&host), Outcome::Done));
    }
    // A job of a lost node runs again after its lease expires.
    host.advance(60);
    start_audit(&host, &[]);
    start_audit(&host, &[]);
    let [job] = &host.jobs()[..] else { panic!("one job") };
    assert_eq!(job.available_at, None, "nothing is left to wait for");
    run_jobs(&host);
    assert_eq!(host.events().len(), 1);
    assert!(host.documents("early_findings").is_empty());
    let told = last_report(&host);
    assert_eq!(told["warnings"], json!(["The audit has no CODEOWNERS file."]));
    assert_eq!(source(&host)["source_status"], "missing");
    assert!(matches!(findings_imported(&host), Outcome::Done));
    assert!(host.jobs().is_empty());
}

#[test]
fn the_host_s_place_comes_first_and_the_newest_of_it() {
    let host = host();
    let gitlab = "[S]\n* @gitlab\n";
    let inputs = [
        input(&host, "sarif", "a.sarif", "{}"),
        input(&host, "code_owners", "CODEOWNERS", "* @root\n"),
        input(&host, "code_owners", ".gitlab/CODEOWNERS", gitlab),
        input(&host, "code_owners", ".github/CODEOWNERS", "* @newest\n"),
        input(&host, "code_owners", ".github/CODEOWNERS", "* @superseded\n"),
        input(&host, "path_list", "p", "a\n"),
    ];
    let told = report(&host, &inputs);
    assert_eq!(source(&host)["source_sha256"], inputs[3]["content_sha256"]);
    let warnings = told["warnings"].as_array().expect("warnings");
    assert_eq!(warnings.len(), 2);
    for (warning, name) in warnings.iter().zip(["CODEOWNERS", ".gitlab/CODEOWNERS"]) {
        let expected = format!("{name} is not read: .github/CODEOWNERS comes first. If");
        assert!(warning.as_str().is_some_and(|text| text.starts_with(&expected)), "{warning}");
    }

    let repository = json!({ "name": "acme/web", "provider": "gitlab" });
    host.put_document("catalog.repositories", &REPOSITORY.to_string(), repository);
    start_audit_as(&host, Uuid::from_u128(0x21), &inputs);
    run_jobs(&host);
    assert_eq!(source(&host)["source_path"], "CODEOWNERS");
    assert_eq!(source(&host)["dialect"], "gitlab");
}

#[test]
fn a_moved_file_counts_at_its_new_place() {
    for (seconds, commits, expected) in [
        (3_601, [None, None], "CODEOWNERS"),
        (3_600, [None, None], ".github/CODEOWNERS"),
        (1, [Some("b"), Some("a")], "CODEOWNERS"),
        (9_999, [Some("a"), Some("a")], ".github/CODEOWNERS"),
        (9_999, [None, Some("a")], "CODEOWNERS"),
    ] {
        let host = host();
        let mut inputs = [
            input(&host, "code_owners", "CODEOWNERS", "* @new\n"),
            input(&host, "code_owners", ".github/CODEOWNERS", "* @former\n"),
            input(&host, "path_list", "p", "a\n"),
        ];
        inputs[0]["ready_at"] = json!(START.plus_seconds(seconds));
        for (input, commit) in inputs.iter_mut().zip(commits) {
            input["commit_sha"] = json!(commit);
        }
        let told = report(&host, &inputs);
        assert_eq!(source(&host)["source_path"], expected, "{seconds} {commits:?}");
        let warning = told["warnings"][0].as_str().expect("a warning");
        assert!(warning.contains("is not read") && warning.contains("an hour"), "{warning}");
    }
}

#[test]
fn a_guessed_dialect_is_reported() {
    let host = host();
    let repository = json!({ "name": "acme/web", "provider": "bitbucket" });
    host.put_document("catalog.repositories", &REPOSITORY.to_string(), repository);
    let list = input(&host, "path_list", "p", "a\n");
    let file = input(&host, "code_owners", ".bitbucket/CODEOWNERS", "@@@Back @alice\n* @@Back\n");
    let warnings = report(&host, &[file, list.clone()])["warnings"].to_string();
    assert!(warnings.contains("read as GitLab's, which is a guess"), "{warnings}");
    assert!(warnings.contains("Line 1: read as a rule: groups of Bitbucket"), "{warnings}");

    let file = input(&host, "code_owners", ".github/CODEOWNERS", "* @a\n");
    start_audit_as(&host, Uuid::from_u128(0x21), &[file, list]);
    run_jobs(&host);
    let events = host.events();
    let told = &events.last().expect("an event").data;
    assert_eq!(told["warnings"], json!([]), "its place implies the dialect");
}

#[test]
fn files_that_cannot_be_read_are_told() {
    for (name, content, status, code) in [
        ("OWNERS", "approvers:\n  - a\n", "unsupported", None),
        ("CODEOWNERS", "reviewers:\n  - a\n", "unsupported", None),
        ("CODEOWNERS", &*"a\n".repeat(20_001), "invalid", Some("too_many_rules")),
        ("CODEOWNERS", &*"#".repeat(3 * 1024 * 1024 + 1), "invalid", Some("too_large")),
    ] {
        let host = host();
        let list = input(&host, "path_list", "p", "a\nb\n");
        let told = report(&host, &[input(&host, "code_owners", name, content), list]);
        assert_eq!(source(&host)["source_status"], status);
        assert_eq!(told["facts"], json!({ "rules": 0, "paths": 2, "unowned": 2 }));
        assert_eq!(told["errors"].get(0).and_then(|error| error["code"].as_str()), code);
        assert_eq!(told["status"], if code.is_some() { "failed" } else { "succeeded" });
    }
}

#[test]
fn a_file_that_is_gone_or_no_text_is_invalid() {
    let host = host();
    let mut gone = input(&host, "code_owners", "CODEOWNERS", "* @a\n");
    gone["blob"] = json!("elsewhere");
    let told = report(&host, &[gone, input(&host, "path_list", "p", "a\n")]);
    assert_eq!(told["errors"][0]["code"], "content_missing");

    let host = super::host();
    let broken = input(&host, "code_owners", "CODEOWNERS", "x");
    host.put_shared_blob("uploads", "code_owners-CODEOWNERS", b"* @a\xff\n");
    let told = report(&host, &[broken, input(&host, "path_list", "p", "a\n")]);
    assert_eq!(told["errors"][0]["code"], "not_utf8");
}

#[test]
fn findings_that_never_come_are_reported() {
    let host = host();
    finding(&host, 1, &["src/a.rs"], None);
    start_audit(&host, &[input(&host, "code_owners", "CODEOWNERS", "*.rs @a\n")]);
    host.advance(240);
    run_jobs(&host);
    let told = last_report(&host);
    assert_eq!(told["facts"], json!({ "rules": 1, "paths": 1, "unowned": 0 }));
    let warnings = told["warnings"].to_string();
    assert!(warnings.contains("not imported within 240 s"), "{warnings}");
}

#[test]
fn paths_of_many_findings_are_held_against_many_rules_in_steps() {
    let host = host();
    for id in 1..=1_001 {
        finding(&host, id, &[format!("src/{id}.rs").as_str()], None);
    }
    let rules: String = (0..2_000).map(|n| format!("/gone{n} @a\n")).collect();
    let rules = format!("{rules}/src/1.rs @a\n");
    start_audit(&host, &[input(&host, "code_owners", "CODEOWNERS", &rules)]);
    host.advance(240);
    assert_eq!(run_jobs(&host), 2);
    let facts = json!({ "rules": 2_001, "paths": 1_001, "unowned": 1_000 });
    assert_eq!(last_report(&host)["facts"], facts);
}

#[test]
fn unowned_is_no_fact_if_not_all_findings_are_read() {
    let host = host();
    for (most, is_whole) in [(5_000, true), (5_001, false)] {
        for id in if is_whole { 1..=most } else { most..=most } {
            finding(&host, id, &["a"], None);
        }
        let audit = Uuid::from_u128(most);
        start_audit_as(&host, audit, &[input(&host, "code_owners", "CODEOWNERS", "* @a\n")]);
        host.advance(240);
        run_jobs(&host);
        let told = host.events().pop().expect("an event").data;
        assert_eq!(told["facts"].get("unowned").is_some(), is_whole, "{told}");
        let has_warning = told["warnings"].to_string().contains("more than 5000 findings");
        assert_ne!(has_warning, is_whole, "{told}");
    }
}

#[test]
fn path_lists_that_are_not_read_are_named() {
    let host = host();
    let inputs = [
        input(&host, "code_owners", "CODEOWNERS", "* @a\n"),
        input(&host, "path_list", "front.txt", "a\n"),
        input(&host, "path_list", "back.txt", "b\n"),
        input(&host, "path_list", "front.txt", "c\n"),
    ];
    let warning =
        "The path list back.txt is not read: front.txt is newer, and one list has all paths.";
    assert_eq!(report(&host, &inputs)["warnings"], json!([warning]));
}
