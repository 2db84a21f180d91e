//! Tests of audits that verify steps.

use area_sdk::Uuid;
use area_sdk::wit::Outcome;
use serde_json::{Value, json};

use super::world::{OTHER_REPOSITORY, RECORD, REPOSITORY, World, step};

const NONE_OPEN: &str = "findings.open == 0";

#[test]
fn an_audit_that_finds_the_predicate_to_hold_verifies_the_step() {
    let world = World::new();
    let program = world.active(&json!([step(NONE_OPEN)]));
    assert_eq!(program["activated_at"], json!(world.0.now()));
    world.audit(1, REPOSITORY, 3);
    let shown = world.show(&program);
    assert_eq!(shown["steps"][0]["evaluation_status"], "unsatisfied");
    assert_eq!(shown["state"], "active");
    world.0.advance(60);
    let audit = world.audit(2, REPOSITORY, 0);
    let shown = world.show(&program);
    assert_eq!(shown["state"], "completed");
    assert_eq!(shown["completed_at"], json!(world.0.now()));
    let step = &shown["steps"][0];
    assert_eq!(step["state"], "verified");
    assert_eq!(step["evaluation_status"], "satisfied");
    assert_eq!(step["verification_audit_id"], json!(audit));
    assert_eq!(step["verified_at"], shown["completed_at"]);
    assert_eq!(step["evidence_ids"], json!([RECORD]));
    assert_eq!(world.published("remediation.step_verified")[0]["order"], 1);
    assert_eq!(world.published("remediation.program_completed")[0]["audit_id"], json!(audit));
    let statuses: Vec<Value> =
        world.evaluations(&program).iter().map(|one| one["status"].clone()).collect();
    assert_eq!(statuses, ["satisfied", "unsatisfied"]);
}

#[test]
fn an_audit_that_completed_before_the_activation_verifies_nothing() {
    let world = World::new();
    let audit = world.audit(1, REPOSITORY, 0);
    world.0.advance(1);
    let program = world.active(&json!([step(NONE_OPEN)]));
    world.complete(audit, REPOSITORY);
    assert_eq!(world.show(&program), program);
    assert!(world.evaluations(&program).is_empty());
}

#[test]
fn a_verified_step_makes_the_next_ready() {
    let world = World::new();
    let steps = json!([step("findings.open < 5"), step("findings.open < 3"), step(NONE_OPEN)]);
    let program = world.active(&steps);
    let states = |audit, open| {
        world.audit(audit, REPOSITORY, open);
        let shown = world.show(&program);
        let steps = shown["steps"].as_array().expect("steps").iter();
        let states: Vec<String> =
            steps.map(|step| step["state"].as_str().expect("a state").to_owned()).collect();
        (states.join(" "), shown["current_step"].clone())
    };
    assert_eq!(states(1, 9), ("ready blocked blocked".to_owned(), json!(1)));
    assert_eq!(states(2, 4), ("verified ready blocked".to_owned(), json!(2)));
    assert_eq!(states(3, 0), ("verified verified verified".to_owned(), json!(3)));
    assert_eq!(world.show(&program)["state"], "completed");
}

#[test]
fn a_step_of_several_repositories_needs_an_audit_of_each() {
    let world = World::new();
    let mut both = step(NONE_OPEN);
    both["repository_ids"] = json!([REPOSITORY, OTHER_REPOSITORY]);
    let program = world.active(&json!([both]));
    world.audit(1, REPOSITORY, 0);
    let shown = world.show(&program);
    assert_eq!(shown["steps"][0]["state"], "ready");
    assert_eq!(shown["steps"][0]["evaluation_status"], "satisfied");
    world.audit(2, REPOSITORY, 1);
    world.audit(3, OTHER_REPOSITORY, 0);
    assert_eq!(world.show(&program)["state"], "active", "the first fell back");
    let last = world.audit(4, REPOSITORY, 0);
    let shown = world.show(&program);
    assert_eq!(shown["state"], "completed");
    assert_eq!(shown["steps"][0]["verification_audit_id"], json!(last));
}

#[test]
fn audits_of_other_repositories_and_of_programs_at_rest_change_nothing() {
    let world = World::new();
    let draft = world.ask(&[NONE_OPEN]).expect("a program");
    world.audit(1, REPOSITORY, 0);
    assert_eq!(world.show(&draft), draft);
    let world = World::new();
    let program = world.active(&json!([step(NONE_OPEN)]));
    world.audit(2, OTHER_REPOSITORY, 0);
    assert_eq!(world.show(&program), program);
    world.transition(&program, Uuid::from_u128(7), "cancelled").expect("cancelled");
    world.audit(3, REPOSITORY, 0);
    assert_eq!(world.show(&program)["steps"][0]["state"], "ready");
}

#[test]
fn what_the_facts_do_not_answer_is_an_error_that_is_told() {
    let world = World::new();
    let program = world.active(&json!([step("findings.by_rule['js/xss'] == 0")]));
    world.audit(1, REPOSITORY, 0);
    assert_eq!(world.show(&program)["steps"][0]["evaluation_status"], "error");
    let evaluation = world.evaluations(&program).remove(0);
    assert_eq!(evaluation["detail"], "No such key: js/xss");
    assert_eq!(evaluation["repository_id"], json!(REPOSITORY));
}

#[test]
fn an_audit_evaluates_a_step_once_however_often_it_is_told_of() {
    let world = World::new();
    let program = world.active(&json!([step(NONE_OPEN)]));
    world.audit(1, REPOSITORY, 1);
    let before = world.show(&program);
    world.audit(1, REPOSITORY, 1);
    assert_eq!(world.show(&program), before);
    assert_eq!(world.evaluations(&program).len(), 1);
}

#[test]
fn an_evaluation_that_never_ends_is_given_up() {
    let world = World::new();
    let program = world.active(&json!([step(NONE_OPEN)]));
    let audit = world.audit(1, OTHER_REPOSITORY, 0);
    let body = json!({
        "repository_id": REPOSITORY, "facts": {}, "inputs": [], "records": [],
    });
    world.0.put_document("schedules.audits", &audit.to_string(), body);
    let payload = json!({ "program_id": program["id"], "audit_id": audit });
    world.0.run("remediation_evaluation", payload, 3).expect("given up");
    let evaluation = world.evaluations(&program).remove(0);
    assert_eq!(evaluation["status"], "error");
    assert!(evaluation["detail"].as_str().is_some_and(|detail| detail.contains("memory")));
}

#[test]
fn each_run_of_the_evaluation_evaluates_one_step() {
    let world = World::new();
    let program = world.active(&json!([step(NONE_OPEN), step(NONE_OPEN)]));
    let audit = Uuid::from_u128(0x1001);
    let body = json!({
        "repository_id": REPOSITORY, "facts": { "findings": { "open": 0 } },
        "inputs": [], "records": [],
    });
    world.0.put_document("schedules.audits", &audit.to_string(), body);
    let payload = json!({ "program_id": program["id"], "audit_id": audit });
    let run = || world.0.run("remediation_evaluation", payload.clone(), 1).expect("a run");
    assert!(matches!(run(), Outcome::Continue(_)));
    assert_eq!(world.evaluations(&program).len(), 1);
    assert_eq!(world.show(&program)["current_step"], 2);
    assert!(matches!(run(), Outcome::Continue(_)));
    assert_eq!(world.show(&program)["state"], "completed");
    assert_eq!(run(), Outcome::Done);
    assert_eq!(world.evaluations(&program).len(), 2);
}

#[test]
fn programs_are_found_page_by_page() {
    let world = World::new();
    for number in 0..110_u128 {
        let finding = Uuid::from_u128(0x9000 + number);
        let body = json!({ "repository_id": REPOSITORY, "match_group_id": null });
        world.0.put_document("control_room.findings", &finding.to_string(), body);
        let body = json!({
            "finding_id": finding, "title": "t", "rationale": "r", "steps": [step(NONE_OPEN)],
        });
        let request = area_sdk::testing::Request::to("create_remediation_program").json(body);
        let program = world.0.call(request).expect("a program").body;
        for (by, to) in [(1, "in_review"), (2, "approved"), (1, "active")] {
            let by = if by == 1 { area_sdk::testing::USER } else { Uuid::from_u128(by) };
            world.transition(&program, by, to).expect("allowed");
        }
    }
    world.audit(1, REPOSITORY, 0);
    assert_eq!(world.published("remediation.program_completed").len(), 110);
}
