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
    let limitations = &workspace.host.documents("scan_limitations")[0]["limitations"];
    assert_eq!(limitations[50], "1250 more; see the audit.");
}

#[test]
fn a_refused_file_is_not_reported_once_a_newer_one_of_its_name_is_read() {
    let workspace = Workspace::new();
    let [bad, other, again] = ["semgrep.sarif", "trivy.sarif", "semgrep.sarif"]
        .map(|name| workspace.upload_as(name, b"{}"));
    let good = workspace.upload_as("semgrep.sarif", &sarif("Semgrep", &[]));
    for (inputs, refused) in [
        (vec![&good, &again, &bad], 0),
        (vec![&again, &good, &bad], 1),
        (vec![&good, &other, &bad], 1),
    ] {
        let inputs: Vec<Value> = inputs.into_iter().cloned().collect();
        let told = workspace.audit(&inputs);
        assert_eq!(told["counts"]["refused"], refused, "{told:#}");
        assert_eq!(told["errors"].as_array().map(Vec::len), Some(refused));
        let has_no_facts = told["warnings"].to_string().contains("no facts about findings");
        assert_eq!(has_no_facts, refused > 0, "{told:#}");
    }
}

#[test]
fn failed_runs_are_counted_until_a_newer_run_is_successful() {
    let workspace = Workspace::new();
    let failed = json!({ "invocations": [{ "executionSuccessful": false }] });
    let failed = workspace.upload(&sarif_with("T", &[], failed));
    let good = workspace.upload(&sarif("T", &[]));
    for (inputs, count) in [(vec![failed.clone()], json!(1)), (vec![good, failed], json!(0))] {
        let told = workspace.audit(&inputs);
        assert_eq!((&told["status"], &told["counts"]["failed"]), (&json!("succeeded"), &count));
        let has_no_facts = told["warnings"].to_string().contains("no facts about findings");
        assert_eq!(has_no_facts, count == 1, "{told:#}");
    }
}

#[test]
fn warnings_of_failed_runs_name_the_upload() {
    let workspace = Workspace::new();
    let failed = json!({ "invocations": [{ "executionSuccessful": false }] });
    let failed = sarif_with("T", &[], failed);
    let (old, new) = (workspace.upload(&failed), workspace.upload(&failed));
    let warnings = workspace.audit(&[new.clone(), old.clone()])["warnings"].to_string();
    for upload in [old, new] {
        let id = upload["upload_id"].as_str().expect("an id");
        assert!(warnings.contains(&format!("scan.sarif (upload {id}) failed")), "{warnings}");
    }
}

#[test]
fn an_audit_reads_a_bounded_number_of_analyses() {
    let workspace = Workspace::new();
    let run = |category: usize| {
        json!({
            "tool": { "driver": { "name": "T" } }, "results": [],
            "automationDetails": { "id": format!("{category}/") },
        })
    };
    // The last run is of an analysis that was read before.
    let runs: Vec<Value> = (0..60).chain([0]).map(run).collect();
    let log = json!({ "version": "2.1.0", "runs": runs }).to_string();
    let told = workspace.scan(log.as_bytes());
    let counts = &told["counts"];
    assert_eq!((&counts["runs"], &counts["refused"]), (&json!(51), &json!(10)));
    assert_eq!(told["errors"][0]["code"], "sarif_too_many_analyses");
}

#[test]
fn absolute_paths_below_no_root_are_counted() {
    let workspace = Workspace::new();
    let results = [("r", "/home/ci/a.c", "m"), ("r", "src/b.c", "m"), ("s", "file:///x/c.c", "m")];
    let told = workspace.scan(&sarif("T", &results));
    let warnings = told["warnings"].as_array().expect("warnings");
    let warning = warnings[0].as_str().expect("a warning");
    assert!(warnings.len() == 1 && warning.contains("in their run: 2."), "{warnings:?}");
    let root =
        json!({ "versionControlProvenance": [{ "mappedTo": { "uri": "file:///home/ci/" } }] });
    let told = Workspace::new().scan(&sarif_with("T", &results[..2], root));
    assert_eq!(told["warnings"], json!([]));
}

#[test]
fn rules_that_do_not_fit_the_event_are_left_out_as_a_whole() {
    let workspace = Workspace::new();
    let rules: Vec<String> = (0..1_400).map(|at| format!("{at:0300}")).collect();
    let results: Vec<_> = rules.iter().map(|rule| (rule.as_str(), "a.c", "m")).collect();
    let told = workspace.scan(&sarif("T", &results));
    assert_eq!((&told["facts"]["open"], &told["facts"]["by_rule"]), (&json!(1_400), &Value::Null));
    let warning = told["warnings"][0].as_str().expect("a warning");
    assert!(warning.contains("too many rules"), "{warning}");
}
