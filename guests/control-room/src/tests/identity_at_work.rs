//! Tests of finding identities: an audit recognizes findings of earlier audits, and verifies
//! findings that the scanner no longer reports.

use area_sdk::testing::WORKSPACE;
use area_shared::testing::corpus;

use super::*;
use crate::identity::{ResultKey, identity};

const SERIES: [&str; 4] = [
    "bandit-ggshield-2023-05-31-cff4196951.sarif",
    "bandit-ggshield-2024-05-31-2bc6aaba7b.sarif",
    "bandit-ggshield-2025-05-30-812be62935.sarif",
    "bandit-ggshield-2026-08-20-eaa3e43b1a.sarif",
];

#[test]
fn a_series_of_scans_is_recognised_from_date_to_date() {
    let Some(series) = corpus("series") else { return };
    let workspace = Workspace::new();
    let mut seen = Vec::new();
    for name in SERIES {
        let file = std::fs::read(series.join(name)).expect("a file");
        let told = workspace.scan(&file);
        assert_eq!(told["errors"], json!([]), "{name}");
        let count = |name: &str| told["counts"][name].as_i64().expect("a count");
        let recognised = count("seen") - count("new");
        seen.push((count("seen"), recognised, count("new"), count("reopened"), count("gone")));

        // A second import of the same file does not change any finding.
        let (before, transitions) = (workspace.findings(), workspace.transitions());
        let again = workspace.scan(&file);
        for nothing in ["new", "reopened", "gone"] {
            assert_eq!(again["counts"][nothing], 0, "{name}: {nothing}");
        }
        assert_eq!(again["counts"]["seen"], count("seen"));
        assert_eq!(workspace.transitions(), transitions);
        let stays = |finding: &Value| {
            ["id", "identity_fingerprint", "state", "lifecycle_version", "title", "sla_due_at"]
                .map(|name| finding[name].clone())
        };
        let after = workspace.findings();
        assert!(before.iter().map(stays).eq(after.iter().map(stays)), "{name}");
        assert_eq!(again["facts"]["by_rule"], told["facts"]["by_rule"]);
    }
    // Most source files were moved between the first two scans, so few findings are recognized.
    let expected = [(26, 0, 26, 0, 0), (47, 7, 40, 0, 19), (55, 41, 14, 0, 6), (82, 47, 35, 0, 8)];
    assert_eq!(seen, expected, "seen, recognised, new, reopened, gone");
}

#[test]
fn equal_results_are_counted_one_by_one() {
    let workspace = Workspace::new();
    let one = ("R1", "src/a.rs", "the same");
    workspace.scan(&sarif("Tool", &[one, one]));
    assert_eq!(workspace.findings().len(), 2);
    let told = workspace.scan(&sarif("Tool", &[one, one, one]));
    assert_eq!((&told["counts"]["new"], &told["counts"]["seen"]), (&json!(1), &json!(3)));
    let told = workspace.scan(&sarif("Tool", &[one]));
    assert_eq!((&told["counts"]["new"], &told["counts"]["gone"]), (&json!(0), &json!(2)));
    assert_eq!(told["facts"]["open"], 1);
}

#[test]
fn gone_is_only_what_the_same_tool_category_and_branch_ran_without() {
    let workspace = Workspace::new();
    let results = [("R1", "a", "one"), ("R2", "b", "two")];
    let category = |id: &str| json!({ "automationDetails": { "id": id } });
    workspace.scan(&sarif_with("Tool", &results, category("back/1")));
    let gone = |told: Value| told["counts"]["gone"].clone();

    assert_eq!(gone(workspace.scan(&sarif("Other", &[]))), 0, "another tool");
    assert_eq!(gone(workspace.scan(&sarif_with("Tool", &[], category("front/1")))), 0);
    let failed = json!({
        "automationDetails": { "id": "back/2" }, "invocations": [{ "executionSuccessful": false }],
    });
    let told = workspace.scan(&sarif_with("Tool", &[], failed));
    assert!(told["warnings"][0].as_str().is_some_and(|text| text.contains("failed")));
    assert_eq!(gone(told), 0, "a failed run");
    let no_results = json!({ "automationDetails": { "id": "back/3" }, "results": null });
    assert_eq!(gone(workspace.scan(&sarif_with("Tool", &[], no_results))), 0, "no list of results");
    let upload = workspace.upload(&sarif_with("Tool", &[], category("back/4")));
    let elsewhere = json!({ "inputs": [upload], "branch_ref": "refs/heads/next" });
    assert_eq!(gone(workspace.audit_of(elsewhere)), 0, "another branch");
    assert_eq!(gone(workspace.audit(&[])), 0, "no run at all");

    let upload = workspace.upload(&sarif_with("Tool", &results[..1], category("back/5")));
    let told = workspace.audit_of(json!({ "inputs": [upload], "branch_ref": "main" }));
    assert_eq!(gone(told), 1, "the default branch by its name");
    let verified = workspace.finding("R2");
    assert_eq!((&verified["state"], &verified["open"]), (&json!("verified"), &json!(false)));
    assert_eq!(verified["sla_due_at"], Value::Null);
    assert_eq!(workspace.finding("R1")["state"], "new");

    let told = workspace.scan(&sarif_with("Tool", &results, category("back/6")));
    assert_eq!((&told["counts"]["reopened"], &told["counts"]["new"]), (&json!(1), &json!(0)));
    let reopened = workspace.finding("R2");
    assert_eq!(reopened["state"], "reopened");
    assert_eq!(reopened["lifecycle_version"], 3);
    assert_ne!(reopened["sla_due_at"], Value::Null);
}

#[test]
fn what_another_branch_still_shows_stays_until_it_too_runs_without_it() {
    let workspace = Workspace::new();
    let found = sarif("Tool", &[("R1", "a", "one")]);
    let on = |branch: &str, content: &[u8]| {
        let upload = workspace.upload(content);
        let told = workspace.audit_of(json!({ "inputs": [upload], "branch_ref": branch }));
        told["counts"].clone()
    };
    on("main", &found);
    assert_eq!(on("next", &found)["new"], 0, "one finding, whatever the branch");
    assert_eq!(on("main", &sarif("Tool", &[]))["gone"], 0);
    assert_eq!(workspace.finding("R1")["state"], "new");
    assert_eq!(on("next", &sarif("Tool", &[]))["gone"], 1);
    assert_eq!(workspace.finding("R1")["state"], "verified");
    assert_eq!(on("next", &found)["reopened"], 1);
    assert_eq!(on("main", &sarif("Tool", &[]))["gone"], 0, "main did not show it any more");
    assert_eq!(on("next", &sarif("Tool", &[]))["gone"], 1);
}

#[test]
fn of_each_tool_and_category_the_newest_good_run_counts() {
    let workspace = Workspace::new();
    let old = workspace.upload(&sarif("Tool", &[("OLD", "a", "one")]));
    let other = workspace.upload(&sarif("Other", &[("OTHER", "a", "one")]));
    let new = workspace.upload(&sarif("Tool", &[("NEW", "a", "one")]));
    let told = workspace.audit(&[new, other, old.clone()]);
    let rules: Vec<Value> = workspace.findings().iter().map(|one| one["rule_id"].clone()).collect();
    assert_eq!(rules, ["OTHER", "NEW"]);
    assert_eq!((&told["counts"]["superseded"], &told["counts"]["runs"]), (&json!(1), &json!(2)));

    let failed = json!({ "invocations": [{ "executionSuccessful": false }] });
    let failed = workspace.upload(&sarif_with("Tool", &[("NEW", "a", "one")], failed));
    let told = workspace.audit(&[failed, old]);
    assert_eq!(told["counts"]["superseded"], 0, "a failed run settles nothing");
    assert_eq!((&told["counts"]["seen"], &told["counts"]["gone"]), (&json!(2), &json!(0)));
}

#[test]
fn a_bad_file_does_not_stop_the_others_and_says_what_to_mend() {
    let workspace = Workspace::new();
    let good = workspace.upload(&sarif("Tool", &[("R1", "a", "one")]));
    let bad = workspace.upload(b"{\"version\":\"2.1.0\",\"runs\":[{\"results\":42}]}");
    let mut lost = workspace.upload(b"{}");
    lost["blob"] = json!("content/lost");
    let mut large = workspace.upload(b"{}");
    large["bytes"] = json!(100_u64 << 20);
    let told = workspace.audit(&[bad.clone(), lost, large, good]);
    assert_eq!((&told["status"], &told["counts"]["new"]), (&json!("succeeded"), &json!(1)));
    let codes: Vec<&Value> =
        told["errors"].as_array().expect("errors").iter().map(|e| &e["code"]).collect();
    assert_eq!(codes, ["sarif_invalid", "content_missing", "file_too_large"]);
    assert_eq!(told["errors"][0]["upload_id"], bad["upload_id"]);
    assert_eq!(workspace.audit(&[bad])["status"], "failed");
    let nothing = workspace.audit(&[]);
    assert_eq!((&nothing["status"], &nothing["facts"]["total"]), (&json!("succeeded"), &json!(1)));
}

#[test]
fn an_audit_is_imported_once_however_often_it_is_told_of() {
    let workspace = Workspace::new();
    let upload = workspace.upload(&sarif("Tool", &[("R1", "a", "one")]));
    let audit = json!({
        "audit_id": Uuid::from_u128(5), "repository_id": REPOSITORY, "branch_ref": null,
        "commit_sha": "c0ffee", "started_at": workspace.now(), "inputs": [upload], "records": [],
    });
    for _ in 0..2 {
        workspace.host.deliver(Uuid::from_u128(1), "audit.started", audit.clone()).expect("taken");
        workspace.run_jobs();
    }
    let told = workspace.host.events();
    assert_eq!(told.iter().filter(|event| event.name == "audit.findings_imported").count(), 1);
    let finding = workspace.finding("R1");
    assert_eq!(finding["audit_count"], 1);
    assert_eq!(finding["evidence_revision"], "c0ffee");
}

#[test]
fn evidence_records_are_findings_unless_a_file_speaks_for_them() {
    let workspace = Workspace::new();
    let ids = [11, 12, 13].map(Uuid::from_u128);
    for id in ids {
        let record = json!({
            "evidence_id": id, "provider": "pentest", "source_ref": "https://shop.example/login",
            "source_type": "web", "summary": "The session cookie is not HttpOnly.\nSeen 3 times.",
            "observed_at": workspace.now(), "content_sha256": "", "kind": "finding",
        });
        workspace.host.put_document("evidence.records", &id.to_string(), record);
    }
    let mut upload = workspace.upload(&sarif("Tool", &[("R1", "a", "one")]));
    upload["evidence_ids"] = json!([ids[2]]);
    let told = workspace.audit_of(json!({ "inputs": [upload], "records": ids }));
    assert_eq!(told["counts"]["new"], 2, "two records say the same, the third names a file");
    let finding = workspace.finding("evidence.web");
    assert_eq!(finding["title"], "The session cookie is not HttpOnly.");
    assert_eq!(finding["source_family"], "evidence");
    assert_eq!(finding["tool"], "pentest");
    assert_eq!(finding["severity_source"], "level");
    let evidence =
        |rule: &str| workspace.transitions_of(&workspace.finding(rule))[0]["evidence_ids"].clone();
    assert_eq!(evidence("R1"), json!([ids[2]]));
    assert_eq!(evidence("evidence.web"), json!([ids[0]]));
    workspace.audit(&[]);
    assert_eq!(workspace.finding("evidence.web")["state"], "new", "silence is not absence");
}

#[test]
fn suppressed_results_are_settled_and_reopened_with_their_suppression() {
    let workspace = Workspace::new();
    let scan = |suppressions: Value| {
        let mut log = sarif_log("Tool", &[("R1", "a", "one")], json!({}));
        log["runs"][0]["results"][0]["suppressions"] = suppressions;
        workspace.scan(log.to_string().as_bytes())["counts"].clone()
    };
    let accepted = json!([{ "kind": "inSource", "justification": "test code" }]);
    assert_eq!(scan(accepted.clone())["new"], 1);
    assert_eq!(workspace.finding("R1")["state"], "false_positive");
    let settled = workspace.transition_to("false_positive");
    assert_eq!(settled["reason"], "Suppressed in the source: test code");
    assert_eq!(scan(json!([]))["reopened"], 1);
    assert_eq!(scan(json!([{ "kind": "external", "status": "underReview" }]))["reopened"], 0);
    assert_eq!(workspace.finding("R1")["state"], "reopened");
    scan(accepted);
    assert_eq!(workspace.finding("R1")["state"], "false_positive");
    let outcomes = &workspace.rebuild()["outcomes"];
    assert_eq!(outcomes["false_positives_removed"], 0, "nobody decided that here");
}

/// Builds a SARIF log with one result for each path, all with the same hash of their line.
fn equal_lines(paths: &[&str]) -> Vec<u8> {
    let result = |path: &&str| {
        json!({
            "ruleId": "R1", "message": { "text": "debug mode" },
            "partialFingerprints": { "primaryLocationLineHash": "b0c28a6e08dc0c46:1" },
            "locations": [{ "physicalLocation": { "artifactLocation": { "uri": path } } }],
        })
    };
    let results: Vec<Value> = paths.iter().map(result).collect();
    let run = json!({ "tool": { "driver": { "name": "Tool" } }, "results": results });
    json!({ "version": "2.1.0", "runs": [run] }).to_string().into_bytes()
}

#[test]
fn a_decision_about_one_of_equal_results_stays_with_its_file() {
    let workspace = Workspace::new();
    let states = || {
        let findings = workspace.findings();
        let of = |one: &Value| (one["locations"][0]["path"].clone(), one["state"].clone());
        let mut states: Vec<_> = findings.iter().map(of).collect();
        states.sort_by_key(|(path, _)| path.to_string());
        states
    };
    let expected = |states: &[(&str, &str)]| -> Vec<(Value, Value)> {
        states.iter().map(|(path, state)| (json!(path), json!(state))).collect()
    };
    workspace.scan(&equal_lines(&["good.py", "more.py"]));
    let findings = workspace.findings();
    let good = findings.iter().find(|one| one["locations"][0]["path"] == "good.py").expect("it");
    let decision = json!({ "to_state": "false_positive" });
    workspace.host.call(workspace.transition(good, decision).if_match(1)).expect("allowed");

    workspace.scan(&equal_lines(&["added.py", "good.py", "more.py"]));
    let three = [("added.py", "new"), ("good.py", "false_positive"), ("more.py", "new")];
    assert_eq!(states(), expected(&three), "one before it");
    let told = workspace.scan(&equal_lines(&["more.py"]));
    let left = [("added.py", "verified"), ("good.py", "false_positive"), ("more.py", "new")];
    assert_eq!(states(), expected(&left), "it is the only one");
    assert_eq!((&told["counts"]["gone"], &told["facts"]["open"]), (&json!(2), &json!(1)));
    let told = workspace.scan(&equal_lines(&["moved.py"]));
    assert_eq!((&told["counts"]["new"], &told["counts"]["gone"]), (&json!(0), &json!(0)), "moved");
    let told = workspace.scan(&equal_lines(&["moved.py", "evil.py"]));
    assert_eq!((&told["counts"]["new"], &told["counts"]["reopened"]), (&json!(0), &json!(1)));
    let left = [("evil.py", "reopened"), ("good.py", "false_positive"), ("moved.py", "new")];
    assert_eq!(states(), expected(&left), "the decision does not hide another file");
    let many: Vec<String> = (0..450).map(|number| format!("{number:03}.py")).collect();
    let mut many: Vec<&str> = many.iter().map(String::as_str).collect();
    many.extend(["good.py", "moved.py"]);
    let told = workspace.scan(&equal_lines(&many));
    assert_eq!(told["counts"]["seen"], 452);
    assert_eq!(told["counts"]["new"], 449, "a chunk has all of them");
    let settled = Request::to("list_findings").with("limit", 50).with("state", "false_positive");
    let settled = workspace.list(settled);
    let paths: Vec<&Value> = settled.iter().map(|one| &one["locations"][0]["path"]).collect();
    assert_eq!(paths, ["good.py"]);
}

#[test]
fn a_gone_false_positive_is_not_taken_by_an_equal_result_in_a_new_file() {
    let workspace = Workspace::new();
    workspace.scan(&equal_lines(&["good.py", "more.py"]));
    let findings = workspace.findings();
    let good = findings.iter().find(|one| one["locations"][0]["path"] == "good.py").expect("it");
    let decision = json!({ "to_state": "false_positive" });
    workspace.host.call(workspace.transition(good, decision).if_match(1)).expect("allowed");
    workspace.scan(&equal_lines(&["more.py"]));
    let told = workspace.scan(&equal_lines(&["more.py", "evil.py"]));
    assert_eq!((&told["counts"]["new"], &told["facts"]["open"]), (&json!(1), &json!(2)));
}

#[test]
fn a_failed_run_and_an_older_good_one_report_the_same_findings() {
    for count in [2, 40] {
        let workspace = Workspace::new();
        let places = || {
            let findings = workspace.findings();
            let place = |one: &Value| (one["id"].to_string(), one["locations"][0]["path"].clone());
            let mut places: Vec<_> = findings.iter().map(place).collect();
            places.sort_by(|(a, _), (b, _)| a.cmp(b));
            places
        };
        let names: Vec<String> = (0..count).map(|number| format!("{number:02}.py")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        workspace.scan(&equal_lines(&names));
        let more: Vec<&str> = ["added.py"].into_iter().chain(names.iter().copied()).collect();
        let good = workspace.upload(&equal_lines(&more));
        workspace.audit(std::slice::from_ref(&good));
        let before = places();
        assert_eq!(before.len(), more.len());

        let mut failed: Value = serde_json::from_slice(&equal_lines(&names)).expect("JSON");
        failed["runs"][0]["invocations"] = json!([{ "executionSuccessful": false }]);
        let failed = workspace.upload(failed.to_string().as_bytes());
        let told = workspace.audit(&[failed, good]);
        assert_eq!((&told["counts"]["new"], &told["counts"]["gone"]), (&json!(0), &json!(0)));
        assert_eq!(told["counts"]["seen"], more.len());
        assert_eq!(places(), before);
    }
}

#[test]
fn more_equal_results_than_are_compared_keep_their_ordinals() {
    let workspace = Workspace::new();
    let names: Vec<String> = (0..1100).map(|number| format!("{number:04}.py")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (some, new) in [(&names[1..], 1099), (&names[..], 1), (&names[..], 0)] {
        let told = workspace.scan(&equal_lines(some));
        assert_eq!((&told["counts"]["new"], &told["counts"]["gone"]), (&json!(new), &json!(0)));
        assert_eq!(told["counts"]["seen"], some.len());
    }
}

#[test]
fn what_is_reopened_after_it_was_gone_is_verified_by_the_next_run() {
    let workspace = Workspace::new();
    workspace.scan(&sarif("Tool", &[("R1", "a", "one"), ("R2", "a", "two")]));
    let transition = |rule: &str, version: u64, state: &str| {
        let body = json!({ "to_state": state });
        let request = workspace.transition(&workspace.finding(rule), body).if_match(version);
        workspace.host.call(request).expect("allowed");
    };
    let states = || ["R1", "R2"].map(|rule| workspace.finding(rule)["state"].clone());
    transition("R1", 1, "false_positive");
    let empty = workspace.upload(&sarif("Tool", &[]));
    workspace.audit(std::slice::from_ref(&empty));
    assert_eq!(states(), ["false_positive", "verified"]);
    transition("R1", 2, "reopened");
    transition("R2", 2, "reopened");
    workspace.audit(&[empty]);
    assert_eq!(states(), ["reopened", "reopened"], "the file is older than the decisions");
    let told = workspace.scan(&sarif("Tool", &[]));
    assert_eq!(states(), ["verified", "verified"]);
    assert_eq!((&told["counts"]["gone"], &told["facts"]["open"]), (&json!(2), &json!(0)));
}

#[test]
fn a_duplicate_that_is_still_reported_is_reopened_when_its_original_is_verified() {
    let workspace = Workspace::new();
    let all = [("R1", "a", "one"), ("R2", "b", "two"), ("R3", "c", "three")];
    workspace.scan(&sarif("Tool", &all));
    let original = workspace.finding("R1")["id"].clone();
    for rule in ["R2", "R3"] {
        let body = json!({ "to_state": "duplicate", "duplicate_of": original });
        let request = workspace.transition(&workspace.finding(rule), body).if_match(1);
        workspace.host.call(request).expect("allowed");
    }
    let told = workspace.scan(&sarif("Tool", &all[1..2]));
    assert_eq!((&told["counts"]["gone"], &told["counts"]["reopened"]), (&json!(2), &json!(1)));
    let state = |rule: &str| workspace.finding(rule)["state"].clone();
    assert_eq!([state("R1"), state("R2"), state("R3")], ["verified", "reopened", "duplicate"]);
}

#[test]
fn a_duplicate_that_is_gone_with_its_original_stays_settled() {
    let workspace = Workspace::new();
    let inputs = |one: &[(&str, &str, &str)], two: &[(&str, &str, &str)]| {
        [workspace.upload(&sarif("One", one)), workspace.upload(&sarif("Two", two))]
    };
    workspace.audit(&inputs(&[("R1", "a", "one")], &[("R2", "b", "two")]));
    let original = workspace.finding("R1")["id"].clone();
    let body = json!({ "to_state": "duplicate", "duplicate_of": original });
    let request = workspace.transition(&workspace.finding("R2"), body).if_match(1);
    workspace.host.call(request).expect("allowed");
    let told = workspace.audit(&inputs(&[], &[]));
    assert_eq!((&told["counts"]["gone"], &told["counts"]["reopened"]), (&json!(2), &json!(0)));
    let state = |rule: &str| workspace.finding(rule)["state"].clone();
    assert_eq!([state("R1"), state("R2")], ["verified", "duplicate"]);
}

/// Stores the only finding, of Tool's rule R1, under the identity of this key.
pub(super) fn give_identity(workspace: &Workspace, key: &ResultKey) {
    let finding = workspace.finding("R1");
    let mut stored = workspace.host.documents("findings").remove(0);
    let identity = identity(WORKSPACE, REPOSITORY, ("Tool", "R1"), key, 0);
    stored["identity_fingerprint"] = json!(identity);
    workspace.host.put_document("findings", finding["id"].as_str().expect("an id"), stored);
}

/// Marks the only finding of R1 as triaged.
pub(super) fn settle(workspace: &Workspace) {
    let request = workspace.transition(&workspace.finding("R1"), json!({ "to_state": "triaged" }));
    workspace.host.call(request.if_match(1)).expect("allowed");
}

#[test]
fn a_finding_follows_its_path_below_the_root_of_the_repository() {
    let workspace = Workspace::new();
    let results = [("R1", "/home/ci/a.c", "one")];
    workspace.scan(&sarif("Tool", &results));
    settle(&workspace);
    let before = workspace.finding("R1");
    let mapped =
        json!({ "versionControlProvenance": [{ "mappedTo": { "uri": "file:///home/ci/" } }] });
    for _ in 0..2 {
        let told = workspace.scan(&sarif_with("Tool", &results, mapped.clone()));
        assert_eq!((&told["counts"]["new"], &told["counts"]["gone"]), (&json!(0), &json!(0)));
        let after = workspace.finding("R1");
        assert_eq!((&after["id"], &after["state"]), (&before["id"], &json!("triaged")));
        assert_eq!(after["locations"][0]["path"], "a.c");
        assert_ne!(after["identity_fingerprint"], before["identity_fingerprint"]);
    }
}

#[test]
fn a_finding_below_an_absolute_base_keeps_its_decision_when_its_path_changes() {
    let workspace = Workspace::new();
    let results = [("R1", "main.c", "one")];
    workspace.scan(&sarif("Tool", &results));
    settle(&workspace);
    let said = json!({
        "originalUriBaseIds": { "FRONT": { "uri": "file:///ci/repo/front/" } },
        "versionControlProvenance": [{ "mappedTo": { "uri": "file:///ci/repo/" } }],
    });
    let mut log = sarif_log("Tool", &results, said);
    let location = &mut log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    location["artifactLocation"]["uriBaseId"] = json!("FRONT");
    let told = workspace.scan(log.to_string().as_bytes());
    assert_eq!((&told["counts"]["new"], &told["counts"]["gone"]), (&json!(0), &json!(0)));
    let finding = workspace.finding("R1");
    assert_eq!(finding["state"], "triaged");
    assert_eq!(finding["locations"][0]["path"], "front/main.c");
}

#[test]
fn a_finding_with_the_identity_of_its_commit_gets_its_new_identity() {
    let workspace = Workspace::new();
    let scan = |path: &str| {
        let mut log = sarif_log("Tool", &[("R1", path, "one")], json!({}));
        log["runs"][0]["results"][0]["partialFingerprints"] = json!({ "commitSha": "1f2e" });
        workspace.scan(log.to_string().as_bytes())["counts"]["new"].clone()
    };
    scan("a.c");
    settle(&workspace);
    let new = workspace.finding("R1");
    let key = ResultKey::Fingerprint([("commitSha".to_owned(), "1f2e".to_owned())].into());
    give_identity(&workspace, &key);
    assert_eq!(scan("ba.c"), 1, "another file");
    assert_eq!(scan("a.c"), 0);
    let get = Request::to("get_finding").with("finding_id", new["id"].clone());
    let found = workspace.host.call(get).expect("found").body;
    assert_eq!(found["identity_fingerprint"], new["identity_fingerprint"]);
}

#[test]
fn a_finding_with_the_identity_of_its_whole_message_gets_its_new_identity() {
    let workspace = Workspace::new();
    let mapped =
        json!({ "versionControlProvenance": [{ "mappedTo": { "uri": "file:///home/ci/" } }] });
    let scan = |said: &str| {
        let said = format!("Package: a\nSeverity: {said}");
        let results = [("R1", "/home/ci/go.mod", said.as_str())];
        workspace.scan(&sarif_with("Tool", &results, mapped.clone()))["counts"].clone()
    };
    scan("LOW\nFixed Version:");
    settle(&workspace);
    let new = workspace.finding("R1");
    let message = "Package: a\nSeverity: LOW\nFixed Version:".to_owned();
    give_identity(&workspace, &ResultKey::Message { path: "go.mod".to_owned(), message });
    for said in ["LOW\nFixed Version:", "HIGH\nFixed Version: 1.0-beta"] {
        let counts = scan(said);
        assert_eq!((&counts["new"], &counts["gone"]), (&json!(0), &json!(0)), "{said}");
        let found = workspace.finding("R1");
        for member in ["id", "state", "identity_fingerprint"] {
            assert_eq!(found[member], new[member], "{said}");
        }
    }
}
