//! Tests of files that are refused, and of the event that reports them.

use super::*;

#[test]
fn no_text_of_a_file_makes_the_event_unstorable() {
    let workspace = Workspace::new();
    let told = workspace.scan(
        br#"{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"T"}},
            "originalUriBaseIds":{"A\u0000":7},"results":[]}]}"#,
    );
    assert_eq!(told["status"], "failed");
    assert!(!told.to_string().contains("\\u0000"), "{told}");
}

#[test]
fn a_file_of_many_refused_and_failed_runs_is_reported_in_an_event_of_bounded_size() {
    let workspace = Workspace::new();
    let failed = json!({ "tool": { "driver": { "name": "T" } } });
    let runs = [vec![json!({}); 1_000], vec![failed; 300]].concat();
    let log = json!({ "version": "2.1.0", "runs": runs }).to_string();
    let told = workspace.scan(log.as_bytes());
    assert_eq!(told["errors"].as_array().map(Vec::len), Some(190));
    assert_eq!(told["counts"]["refused"], 1_000);
    let warnings = told["warnings"].as_array().expect("warnings");
    let more = |count: u32, what: &str| json!(format!("{count} more {what} are not reported."));
    assert_eq!(warnings[190..], [more(110, "warnings"), more(810, "errors")]);
}
