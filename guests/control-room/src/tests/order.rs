//! Tests of findings that several files report: an older file does not override what a newer one
//! showed, and scans suppress a finding only if all that report it do.

use super::*;

/// Builds a SARIF log with one result at this line, with this level and these suppressions.
fn log(line: i64, level: &str, suppressions: Value) -> Vec<u8> {
    let revision = json!([{ "revisionId": format!("c{line}") }]);
    let said = json!({ "versionControlProvenance": revision });
    let mut log = sarif_log("Tool", &[("R1", "a.c", "one")], said);
    let result = &mut log["runs"][0]["results"][0];
    result["level"] = json!(level);
    result["suppressions"] = suppressions;
    result["locations"][0]["physicalLocation"]["region"]["startLine"] = json!(line);
    log.to_string().into_bytes()
}

fn shown() -> Vec<u8> {
    log(1, "error", json!([]))
}

fn suppressed() -> Vec<u8> {
    log(1, "error", json!([{ "kind": "inSource", "justification": "test" }]))
}

impl Workspace {
    /// Runs an audit of this branch with this upload. Returns the number of reopened findings.
    fn audit_on(&self, branch: &str, upload: &Value) -> Value {
        let told = self.audit_of(json!({ "inputs": [upload], "branch_ref": branch }));
        told["counts"]["reopened"].clone()
    }

    /// Returns state and lifecycle version of the only finding of R1.
    fn state_of_r1(&self) -> (Value, Value) {
        let finding = self.finding("R1");
        (finding["state"].clone(), finding["lifecycle_version"].clone())
    }
}

#[test]
fn the_newest_of_several_files_describes_a_finding() {
    let workspace = Workspace::new();
    let mut inputs = Vec::new();
    for (line, level) in [(10_i64, "note"), (20, "warning"), (30, "error")] {
        let content = log(line, level, json!([]));
        inputs.insert(0, workspace.upload_as(&format!("scan-{line}.sarif"), &content));
        workspace.audit(&inputs);
        let finding = workspace.finding("R1");
        assert_eq!(finding["locations"][0]["start_line"], line);
        assert_eq!(finding["scanner_severity"], level);
        assert_eq!(finding["evidence_revision"], format!("c{line}"));
    }
}

#[test]
fn of_the_files_of_a_tool_the_newest_one_suppresses_or_shows() {
    let workspace = Workspace::new();
    let first = workspace.upload_as("scan-1.sarif", &shown());
    workspace.audit(std::slice::from_ref(&first));
    let second = workspace.upload_as("scan-2.sarif", &suppressed());
    for _ in 0..3 {
        let told = workspace.audit(&[second.clone(), first.clone()]);
        assert_eq!(told["counts"]["reopened"], 0);
        assert_eq!(workspace.state_of_r1(), (json!("false_positive"), json!(2)));
    }
    let third = workspace.upload_as("scan-3.sarif", &shown());
    for reopened in [1, 0] {
        let told = workspace.audit(&[third.clone(), second.clone(), first.clone()]);
        assert_eq!(told["counts"]["reopened"], reopened);
        assert_eq!(workspace.state_of_r1(), (json!("reopened"), json!(3)));
    }
}

#[test]
fn a_failed_run_is_newer_than_the_good_one_of_its_stream() {
    let workspace = Workspace::new();
    let good = workspace.upload(&shown());
    workspace.audit(std::slice::from_ref(&good));
    let mut failed: Value = serde_json::from_slice(&suppressed()).expect("JSON");
    failed["runs"][0]["invocations"] = json!([{ "executionSuccessful": false }]);
    let failed = workspace.upload(failed.to_string().as_bytes());
    for _ in 0..2 {
        workspace.audit(&[failed.clone(), good.clone()]);
        assert_eq!(workspace.state_of_r1(), (json!("false_positive"), json!(2)));
    }
}

#[test]
fn a_suppression_on_one_branch_does_not_hide_what_another_shows() {
    let workspace = Workspace::new();
    let main = workspace.upload(&shown());
    let next = workspace.upload(&suppressed());
    for _ in 0..2 {
        for (branch, upload) in [("main", &main), ("next", &next)] {
            assert_eq!(workspace.audit_on(branch, upload), 0);
            assert_eq!(workspace.state_of_r1(), (json!("new"), json!(1)));
        }
    }
    let main = workspace.upload(&suppressed());
    for (branch, upload) in [("main", &main), ("next", &next), ("main", &main)] {
        assert_eq!(workspace.audit_on(branch, upload), 0);
        assert_eq!(workspace.state_of_r1(), (json!("false_positive"), json!(2)));
    }
    let main = workspace.upload(&shown());
    assert_eq!(workspace.audit_on("main", &main), 1);
    for (branch, upload) in [("next", &next), ("main", &main)] {
        assert_eq!(workspace.audit_on(branch, upload), 0);
        assert_eq!(workspace.state_of_r1(), (json!("reopened"), json!(3)));
    }
    // Fixed on main: only the branch that suppresses the finding reports it.
    workspace.audit_on("main", &workspace.upload(&sarif("Tool", &[])));
    workspace.audit_on("next", &next);
    assert_eq!(workspace.state_of_r1(), (json!("false_positive"), json!(4)));
}

#[test]
fn a_finding_that_an_older_version_suppressed_stays_so_until_a_branch_shows_it() {
    let workspace = Workspace::new();
    let upload = workspace.upload(&suppressed());
    workspace.audit_on("main", &upload);
    workspace.audit_on("next", &upload);
    let id = workspace.finding("R1")["id"].clone();
    let mut stored = workspace.host.documents("findings").remove(0);
    stored.as_object_mut().expect("an object").remove("suppressed_by").expect("stored");
    workspace.host.put_document("findings", id.as_str().expect("an id"), stored);
    for branch in ["main", "next"] {
        assert_eq!(workspace.audit_on(branch, &upload), 0);
        assert_eq!(workspace.state_of_r1(), (json!("false_positive"), json!(2)));
    }
    assert_eq!(workspace.audit_on("main", &workspace.upload(&shown())), 1);
}

#[test]
fn a_suppressed_finding_that_a_person_reopened_stays_so_until_a_newer_file() {
    let workspace = Workspace::new();
    let upload = workspace.upload(&suppressed());
    workspace.audit(std::slice::from_ref(&upload));
    let finding = workspace.finding("R1");
    let body = json!({ "to_state": "reopened", "reason": "real" });
    workspace.host.call(workspace.transition(&finding, body).if_match(2)).expect("allowed");
    workspace.audit(&[upload]);
    assert_eq!(workspace.state_of_r1(), (json!("reopened"), json!(3)));
    workspace.scan(&suppressed());
    assert_eq!(workspace.state_of_r1(), (json!("false_positive"), json!(4)));
}

#[test]
fn a_verified_finding_that_comes_back_suppressed_is_a_false_positive() {
    let workspace = Workspace::new();
    workspace.scan(&shown());
    workspace.scan(&sarif("Tool", &[]));
    assert_eq!(workspace.finding("R1")["state"], "verified");
    let told = workspace.scan(&suppressed());
    let finding = workspace.finding("R1");
    assert_eq!((&finding["state"], &finding["present"]), (&json!("false_positive"), &json!(true)));
    assert_eq!(told["counts"]["reopened"], 0);
}
