//! Tests of the control room response: its members, its numbers and its stability.

use area_sdk::testing::{USER, member_names};

use super::*;

#[test]
fn an_empty_workspace_has_an_empty_room() {
    let workspace = Workspace::new();
    let shown = workspace.host.call(Request::to("get_control_room")).expect("shown").body;
    assert!(workspace.host.documents("rooms").is_empty(), "nothing is kept of that");
    for room in [shown, workspace.rebuild()] {
        for list in ["match_suggestions", "recent_transitions", "recurring_findings"] {
            assert_eq!(room[list], json!([]));
        }
        assert_eq!(room["outcomes"]["measurement_status"], "measuring");
        assert_eq!(room["outcomes"]["remediation_speed_hours"], Value::Null);
        let windows: Vec<&Value> =
            room["snapshots"].as_array().expect("three").iter().map(|one| &one["window"]).collect();
        assert_eq!(windows, ["24h", "7d", "30d"]);
        assert_eq!(room["snapshots"][0]["score"], "100.00");
        assert_eq!(room["snapshots"][0]["freshness_percent"], Value::Null);
        assert_eq!(room["snapshots"][0]["severity_counts"]["critical"], 0);
    }
}

#[test]
fn the_room_has_exactly_the_contract_s_fields_with_values_in_them() {
    let workspace = Workspace::new();
    let service = json!({ "name": "shop", "repository_ids": [REPOSITORY], "group_id": Uuid::nil(),
        "environment": "production" });
    workspace.host.put_document("catalog.services", "s", service);
    let group = json!({ "data_classification": "restricted" });
    workspace.host.put_document("catalog.groups", &Uuid::nil().to_string(), group);
    let mut log = sarif_log("One", &[("sql", "a.js", "one two")], json!({}));
    log["runs"][0]["results"][0]["properties"] = json!({ "security-severity": "7.5" });
    log["runs"][0]["versionControlProvenance"] = json!([{ "revisionId": "c0ffee" }]);
    workspace.scan(log.to_string().as_bytes());
    workspace.scan(log.to_string().as_bytes());
    workspace.scan(&sarif("Two", &[("sql", "a.js", "one two")]));
    let assigned = json!({ "assignments": [
        { "finding_id": workspace.findings()[1]["id"], "assignee_id": USER },
    ] });
    workspace.host.deliver(Uuid::from_u128(9), "ownership.applied", assigned).expect("taken");
    workspace.run_jobs();
    let room = workspace.rebuild();

    let expected = "calculation_version generated_at match_suggestions outcomes recent_transitions \
        recurring_findings snapshots";
    assert_eq!(member_names(&room), expected);
    let recurring = &room["recurring_findings"][0];
    for (name, value) in recurring.as_object().expect("an object") {
        assert_ne!(*value, Value::Null, "{name}");
    }
    assert_eq!(recurring["risk_severity"], "high");
    assert_eq!(recurring["cvss_score"], "7.5");
    assert_eq!(recurring["severity_source"], "cvss");
    // Risk: severity 7.5 (CVSS score) times exposure 1.8 times recurrence 1.1.
    assert_eq!(recurring["risk_total"], "14.85");
    assert_eq!(recurring["architecture_impact"], "critical");
    assert_eq!(recurring["architecture_confidence"], "0.80");
    assert_eq!(recurring["component_identity"], "service:shop");
    assert_eq!(recurring["architecture_disposition"], "pending");
    assert_eq!(recurring["evidence_revision"], "c0ffee");
    assert_eq!(room["match_suggestions"][0]["similarity"], "1.0000");
    assert_eq!(room["recent_transitions"].as_array().map(Vec::len), Some(2));
    let day = &room["snapshots"][0];
    assert_eq!(day["counts"]["total"], 2);
    assert_eq!(day["counts"]["new"], 2);
    assert_eq!(day["recurring_count"], 1);
    assert_eq!(day["severity_counts"]["high"], 1);
    assert_eq!(day["severity_counts"]["medium"], 1);
    assert_eq!(day["architecture_impact_counts"]["critical"], 1);
    assert_eq!(day["architecture_impact_counts"]["high"], 1);
    // Score: 100 / (1 + (5 + 2) / 100), with the weights of one high and one medium finding.
    assert_eq!((&day["score"], &day["freshness_percent"]), (&json!("93.46"), &json!("100.00")));
    assert_eq!(day["source_transition_version"], 2);
    let kept = workspace.host.call(Request::to("get_control_room")).expect("shown").body;
    assert_eq!(kept, room);
    assert_eq!(workspace.host.events().pop().expect("told").name, "control_room.rebuilt");
}

#[test]
fn the_same_data_gives_the_same_content() {
    let workspace = Workspace::new();
    workspace.scan(&sarif("One", &[("R", "a", "one"), ("S", "b", "two")]));
    let mut first = workspace.rebuild();
    workspace.host.advance(60);
    let mut second = workspace.rebuild();
    assert_ne!(first["generated_at"], second["generated_at"]);
    first["generated_at"] = json!(null);
    second["generated_at"] = json!(null);
    assert_eq!(first, second);
    assert_eq!(workspace.host.documents("snapshots").len(), 3);

    let body = json!({ "to_state": "triaged" });
    let finding = workspace.finding("R");
    workspace.host.call(workspace.transition(&finding, body)).expect("triaged");
    let third = workspace.rebuild();
    assert_ne!(third["snapshots"][0]["id"], second["snapshots"][0]["id"]);
    assert_eq!(workspace.host.documents("snapshots").len(), 6);
}

#[test]
fn outcomes_are_measured_with_twenty_decisions_in_both_windows() {
    let workspace = Workspace::new();
    let names: Vec<String> = (0..41).map(|n| format!("rule{n:02}")).collect();
    let results: Vec<(&str, &str, &str)> =
        names.iter().map(|name| (name.as_str(), "a", name.as_str())).collect();
    workspace.scan(&sarif("One", &results[..20]));
    let decide = |some: &[String]| {
        for name in some {
            let finding = workspace.finding(name);
            let body = json!({ "to_state": "triaged" });
            workspace.host.call(workspace.transition(&finding, body)).expect("triaged");
        }
    };
    workspace.host.advance(4 * 3600);
    decide(&names[..20]);
    workspace.host.advance(40 * 86_400);
    workspace.scan(&sarif("One", &results));
    workspace.host.advance(3600);
    decide(&names[20..39]);
    let outcomes = workspace.rebuild()["outcomes"].clone();
    assert_eq!(outcomes["measurement_status"], "measuring");
    assert_eq!(outcomes["decision_sample_size"], 19);
    assert_eq!(outcomes["baseline_review_time_hours"], "4.0000");
    assert_eq!(outcomes["review_time_saved_hours"], Value::Null);
    decide(&names[39..40]);
    let outcomes = workspace.rebuild()["outcomes"].clone();
    assert_eq!(outcomes["measurement_status"], "measured");
    assert_eq!(outcomes["current_review_time_hours"], "1.0000");
    assert_eq!(outcomes["review_time_saved_hours"], "60.0000");

    // MTTR is the time from the start of the lifecycle until the verification: here two hours.
    workspace.host.advance(3600 - 61);
    workspace.scan(&sarif("One", &results[..40]));
    let room = workspace.rebuild();
    assert_eq!(room["outcomes"]["verified_remediations"], 1);
    assert_eq!(room["outcomes"]["remediation_speed_hours"], "2.0000");
    for snapshot in room["snapshots"].as_array().expect("three") {
        assert_eq!(snapshot["mttr_hours"], "2.0000");
        assert_eq!(snapshot["counts"]["window_verified"], 1);
        assert_eq!(snapshot["time_to_decision_hours"], "1.0000");
    }
    workspace.host.advance(3 * 86_400);
    let later = workspace.rebuild()["snapshots"].clone();
    assert_eq!(later[0]["mttr_hours"], Value::Null);
    assert_eq!(later[1]["mttr_hours"], "2.0000");
    assert_eq!(later[0]["freshness_percent"], "0.00");
    assert_eq!(later[1]["freshness_percent"], "100.00");
}
