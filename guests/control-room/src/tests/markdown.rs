//! Tests of results whose message is only in Markdown, as typos writes it.

use super::identity_at_work::{give_identity, settle};
use super::*;
use crate::identity::ResultKey;

/// Builds a SARIF log with one result of R1 in `a.py` for each message, which has no text.
fn log(messages: &[&str]) -> Vec<u8> {
    let results: Vec<_> = messages.iter().map(|_| ("R1", "a.py", "")).collect();
    let mut log = sarif_log("Tool", &results, json!({}));
    for (at, message) in messages.iter().enumerate() {
        log["runs"][0]["results"][at]["message"] = json!({ "markdown": message });
    }
    log.to_string().into_bytes()
}

const ABD: &str = "`abd` should be `and`";
const RECIEVE: &str = "`recieve` should be `receive`";

#[test]
fn results_with_different_messages_are_different_findings() {
    let workspace = Workspace::new();
    workspace.scan(&log(&[ABD, RECIEVE]));
    let findings = workspace.findings();
    let abd = findings.iter().find(|one| one["title"] == ABD).expect("it");
    let decision = json!({ "to_state": "false_positive" });
    workspace.host.call(workspace.transition(abd, decision).if_match(1)).expect("allowed");
    let told = workspace.scan(&log(&[RECIEVE]));
    assert_eq!((&told["counts"]["gone"], &told["facts"]["open"]), (&json!(1), &json!(1)));
}

#[test]
fn a_finding_without_its_message_gets_its_new_identity() {
    let workspace = Workspace::new();
    workspace.scan(&log(&[ABD]));
    settle(&workspace);
    let new = workspace.finding("R1");
    let key = ResultKey::Message { path: "a.py".to_owned(), message: String::new() };
    give_identity(&workspace, &key);
    for _ in 0..2 {
        let told = workspace.scan(&log(&[ABD]));
        assert_eq!((&told["counts"]["new"], &told["counts"]["gone"]), (&json!(0), &json!(0)));
        let found = workspace.finding("R1");
        for member in ["id", "state", "identity_fingerprint"] {
            assert_eq!(found[member], new[member]);
        }
    }
}
