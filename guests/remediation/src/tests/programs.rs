//! Tests of creating, reading and reviewing programs.

use area_sdk::Uuid;
use area_sdk::testing::{Request, USER, WORKSPACE, member_names};
use serde_json::{Value, json};

use super::world::{FINDING, GROUP, OTHER_REPOSITORY, REVIEWER, World, step};

const NONE_OPEN: &str = "findings.open == 0";

#[test]
fn a_program_has_exactly_the_fields_of_the_contract() {
    let world = World::new();
    let program = world.ask(&[NONE_OPEN, "findings.new == 0"]).expect("a program");
    let expected = "activated_at completed_at created_at created_by current_step finding_id id \
        rationale review_notes reviewed_by root_cause_id state steps target_state_ref title \
        updated_at version workspace_id";
    assert_eq!(member_names(&program), expected);
    let expected = "evaluation_status evidence_ids invariant_id invariant_version order \
        owner_scope repository_ids review_notes state title verification_audit_id \
        verification_predicate verified_at";
    assert_eq!(member_names(&program["steps"][0]), expected);
    assert_eq!((&program["state"], &program["current_step"]), (&json!("draft"), &json!(1)));
    assert_eq!(program["root_cause_id"], json!(GROUP));
    assert_eq!(program["created_by"], json!(USER));
    assert_eq!(program["workspace_id"], json!(WORKSPACE));
    let states = [&program["steps"][0]["state"], &program["steps"][1]["state"]];
    assert_eq!(states, ["ready", "blocked"]);
    assert_eq!(program["steps"][1]["order"], 2);
    assert_eq!(program["steps"][0]["evaluation_status"], "pending");
    assert_eq!(world.published("remediation.program_created")[0]["program_id"], program["id"]);
}

#[test]
fn programs_with_the_same_target_name_the_same_target() {
    let target = |predicate| {
        let program = World::new().ask(&[predicate]).expect("a program");
        program["target_state_ref"].as_str().expect("a reference").to_owned()
    };
    assert_eq!(target(NONE_OPEN), target(NONE_OPEN));
    assert_ne!(target(NONE_OPEN), target("findings.open == 1"));
    assert!(target(NONE_OPEN).starts_with("sha256:"));
}

#[test]
fn a_wrong_predicate_is_refused_with_what_is_wrong() {
    let world = World::new();
    let refused = world.ask(&["findings.open ==", NONE_OPEN, "findings.opne == 0"]);
    let refused = refused.expect_err("refused");
    let pointers: Vec<&str> =
        refused.violations.iter().map(|violation| violation.pointer.as_str()).collect();
    assert_eq!(pointers, ["/steps/0/verification_predicate", "/steps/2/verification_predicate"]);
    assert!(refused.violations[0].message.contains("column 17"));
    assert!(refused.hint.is_some_and(|hint| hint.contains("findings.by_severity")));
}

#[test]
fn repositories_of_steps_are_the_workspaces_and_named_once() {
    let world = World::new();
    let mut wrong = step(NONE_OPEN);
    wrong["repository_ids"] = json!([OTHER_REPOSITORY, Uuid::from_u128(404), OTHER_REPOSITORY]);
    let refused = world.ask_for(&json!([step(NONE_OPEN), wrong])).expect_err("refused");
    let said: Vec<(&str, &str)> = refused
        .violations
        .iter()
        .map(|violation| (violation.pointer.as_str(), violation.message.as_str()))
        .collect();
    let expected = [
        ("/steps/1/repository_ids/1", "This workspace has no such repository."),
        ("/steps/1/repository_ids/2", "This repository is listed twice."),
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_finding_must_be_there() {
    let world = World::new();
    let body = json!({
        "finding_id": Uuid::from_u128(404), "title": "t", "rationale": "r",
        "steps": [step(NONE_OPEN)],
    });
    let refused = world.0.call(Request::to("create_remediation_program").json(body));
    assert_eq!(format!("{:?}", refused.expect_err("refused").kind), "ProblemKind::NotFound");
}

#[test]
fn a_finding_has_one_open_program() {
    let world = World::new();
    let first = world.ask(&[NONE_OPEN]).expect("a program");
    let refused = world.ask(&[NONE_OPEN]).expect_err("another is open");
    assert_eq!(refused.code.as_deref(), Some("program_open"));
    world.transition(&first, USER, "cancelled").expect("cancelled");
    world.ask(&[NONE_OPEN]).expect("another");
    let of_finding = Request::to("list_remediation_programs").with("limit", 50);
    let list = world.0.call(of_finding.with("finding_id", FINDING.to_string())).expect("a list");
    assert_eq!(list.body["items"].as_array().map(Vec::len), Some(2));
    let drafts = Request::to("list_remediation_programs").with("limit", 50).with("state", "draft");
    let drafts = world.0.call(drafts).expect("a list").body;
    assert_eq!(drafts["items"].as_array().map(Vec::len), Some(1));
}

#[test]
fn the_reviewer_is_not_the_author() {
    let world = World::new();
    let program = world.ask(&[NONE_OPEN]).expect("a program");
    world.transition(&program, USER, "in_review").expect("sent");
    for verdict in ["approved", "rejected"] {
        let refused = world.transition(&program, USER, verdict).expect_err("the author");
        assert_eq!(refused.code.as_deref(), Some("reviewer_is_author"));
    }
    let approved = world.transition(&program, REVIEWER, "approved").expect("approved");
    assert_eq!(approved["reviewed_by"], json!(REVIEWER));
}

#[test]
fn notes_of_a_review_are_kept_with_program_and_steps() {
    let world = World::new();
    let program = world.ask(&[NONE_OPEN, NONE_OPEN]).expect("a program");
    world.transition(&program, USER, "in_review").expect("sent");
    let review = |order: u32| {
        let body = json!({
            "to_state": "approved", "notes": "Good.",
            "step_notes": [{ "order": order, "notes": "Mind the joins." }],
        });
        let request = world.request("transition_remediation_program", &program).by(REVIEWER);
        world.0.call(request.json(body)).map(|answer| answer.body)
    };
    let refused = review(3).expect_err("no such step");
    assert_eq!(refused.violations[0].pointer, "/step_notes/0/order");
    let approved = review(2).expect("approved");
    assert_eq!(approved["review_notes"], "Good.");
    assert_eq!(approved["steps"][0]["review_notes"], Value::Null);
    assert_eq!(approved["steps"][1]["review_notes"], "Mind the joins.");
    let told = world.published("remediation.program_transitioned").pop().expect("told");
    assert_eq!((&told["to_state"], &told["actor_id"]), (&json!("approved"), &json!(REVIEWER)));
}

#[test]
fn a_stale_transition_is_refused() {
    let world = World::new();
    let program = world.ask(&[NONE_OPEN]).expect("a program");
    let send = world.request("transition_remediation_program", &program).if_match(2);
    let refused = world.0.call(send.json(json!({ "to_state": "in_review" })));
    assert_eq!(format!("{:?}", refused.expect_err("stale").kind), "ProblemKind::VersionConflict");
}
