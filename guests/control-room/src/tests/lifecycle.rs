//! Tests of transitions by users, by audits and by the end of an accepted risk.

use area_sdk::testing::USER;
use proptest::prelude::*;

use super::*;
use crate::state::{Actor, FindingState};

fn code(problem: &area_sdk::Problem) -> Option<&str> {
    problem.code.as_deref()
}

fn with_finding() -> (Workspace, Value) {
    let workspace = Workspace::new();
    workspace.scan(&sarif("Tool", &[("R1", "a", "one")]));
    let finding = workspace.finding("R1");
    (workspace, finding)
}

/// Stores an evidence record and returns its id.
fn with_evidence(workspace: &Workspace) -> Uuid {
    let id = Uuid::from_u128(0xe1);
    let record = json!({ "evidence_id": id, "kind": "finding", "content_sha256": "" });
    workspace.host.put_document("evidence.records", &id.to_string(), record);
    id
}

#[test]
fn only_evidence_of_the_workspace_supports_a_transition() {
    let (workspace, finding) = with_finding();
    let evidence = with_evidence(&workspace);
    let before = workspace.transitions();
    let ids = json!([evidence, evidence, finding["id"]]);
    let body = json!({ "to_state": "triaged", "evidence_ids": ids });
    let refused = workspace.host.call(workspace.transition(&finding, body)).expect_err("refused");
    assert_eq!(refused.violations[0].pointer, "/evidence_ids/2");
    assert_eq!(workspace.transitions(), before);
    assert_eq!(workspace.finding("R1")["state"], "new");
    let body = json!({ "to_state": "triaged", "evidence_ids": [evidence, evidence] });
    workspace.host.call(workspace.transition(&finding, body)).expect("made");
}

#[test]
fn a_transition_is_recorded_and_supersedes_the_one_before() {
    let (workspace, finding) = with_finding();
    workspace.host.advance(7200);
    let evidence = with_evidence(&workspace);
    let body = json!({ "to_state": "triaged", "reason": "real", "evidence_ids": [evidence] });
    let made = workspace.host.call(workspace.transition(&finding, body).if_match(1)).expect("made");
    assert_eq!((made.status, made.version), (201, Some(2)));
    let record = &made.body;
    assert_eq!(record["actor_id"], json!(USER));
    assert_eq!((&record["from_state"], &record["to_state"]), (&json!("new"), &json!("triaged")));
    assert_eq!(record["evidence_ids"], json!([evidence]));
    let all = workspace.transitions_of(&finding);
    assert_eq!(all.len(), 2);
    assert_eq!((&all[0], &all[1]["to_state"]), (record, &json!("new")));
    assert_eq!(all[0]["supersedes_transition_id"], all[1]["id"]);
    assert_eq!(all[1]["supersedes_transition_id"], Value::Null);
    assert_ne!(all[1]["verification_audit_id"], Value::Null);
    let told = workspace.host.events().pop().expect("an event");
    assert_eq!(told.name.as_str(), "finding.transitioned");
    assert_eq!(told.data["to_state"], "triaged");
}

#[test]
fn a_stale_version_is_refused_and_an_audit_that_sees_it_again_makes_none_stale() {
    let (workspace, finding) = with_finding();
    workspace.scan(&sarif("Tool", &[("R1", "a", "one")]));
    let triage = || workspace.transition(&finding, json!({ "to_state": "triaged" }));
    workspace.host.call(triage().if_match(1)).expect("still version 1");
    let stale = workspace
        .host
        .call(workspace.transition(&finding, json!({ "to_state": "in_progress" })).if_match(1));
    assert!(stale.expect_err("stale").detail.contains('2'));
    let shown =
        workspace.host.call(Request::to("get_finding").with("finding_id", finding["id"].clone()));
    assert_eq!(shown.expect("shown").version, Some(2));
}

#[test]
fn an_accepted_risk_takes_reason_and_date_and_ends_by_itself() {
    let (workspace, finding) = with_finding();
    let refused = |body: Value| {
        let refused =
            workspace.host.call(workspace.transition(&finding, body)).expect_err("refused");
        refused.violations.iter().map(|violation| violation.pointer.clone()).collect::<Vec<_>>()
    };
    assert_eq!(refused(json!({ "to_state": "accepted_risk" })), ["/reason", "/expires_at"]);
    let past =
        json!({ "to_state": "accepted_risk", "reason": "x", "expires_at": "2020-01-01T00:00:00Z" });
    assert_eq!(refused(past), ["/expires_at"]);
    let odd = json!({ "to_state": "triaged", "expires_at": "2099-01-01T00:00:00Z", "duplicate_of": USER });
    assert_eq!(refused(odd), ["/expires_at", "/duplicate_of"]);
    assert_eq!(refused(json!({ "to_state": "verified" })), ["/to_state"]);
    assert_eq!(refused(json!({ "to_state": "new" })), ["/to_state"]);

    let until = workspace.now().plus_seconds(86_400);
    let body = json!({ "to_state": "accepted_risk", "reason": "low traffic", "expires_at": until });
    workspace.host.call(workspace.transition(&finding, body.clone())).expect("accepted");
    assert_eq!(workspace.finding("R1")["accepted_until"], json!(until));
    let [job] = &workspace.host.take_jobs()[..] else { panic!("one job") };
    assert_eq!((job.available_at, job.kind.as_str()), (Some(until), "expire_acceptance"));
    workspace.host.advance(86_400);
    for _ in 0..2 {
        workspace.host.run(&job.kind, job.payload.clone(), 1).expect("done");
        let reopened = workspace.finding("R1");
        assert_eq!(reopened["state"], "reopened");
        assert_eq!(reopened["lifecycle_version"], 3);
        assert_eq!(reopened["auto_disposition"], true);
        assert_eq!(reopened["lifecycle_started_at"], json!(until), "a new lifecycle");
    }
    // After the risk was accepted again, the expiry job of the first acceptance has no effect.
    let later = workspace.now().plus_seconds(86_400);
    let again = json!({ "to_state": "accepted_risk", "reason": "still", "expires_at": later });
    workspace.host.call(workspace.transition(&finding, again)).expect("accepted");
    workspace.host.run(&job.kind, job.payload.clone(), 1).expect("done");
    assert_eq!(workspace.finding("R1")["state"], "accepted_risk");
}

#[test]
fn the_end_of_an_acceptance_is_neither_cancelled_nor_given_up() {
    let (workspace, finding) = with_finding();
    let until = workspace.now().plus_seconds(86_400);
    let body = json!({ "to_state": "accepted_risk", "reason": "low traffic", "expires_at": until });
    workspace.host.call(workspace.transition(&finding, body)).expect("accepted");
    let cancel = || {
        let job = workspace.host.take_jobs().remove(0);
        let data = json!({
            "job_id": job.id, "area": "control_room", "kind": job.kind,
            "resource_id": job.resource, "actor_id": USER,
        });
        workspace.host.deliver(Uuid::from_u128(9), "job.cancelled", data).expect("handled");
        workspace.host.jobs()
    };
    let jobs = cancel();
    let [job] = &jobs[..] else { panic!("one job") };
    assert_eq!((job.available_at, job.kind.as_str()), (Some(until), "expire_acceptance"));
    workspace.host.advance(86_400);
    let _ = workspace.host.take_jobs();
    workspace.host.run(&job.kind, job.payload.clone(), 8).expect("put off");
    assert_eq!(workspace.finding("R1")["state"], "accepted_risk");
    let jobs = workspace.host.jobs();
    let [again] = &jobs[..] else { panic!("one job") };
    let tomorrow = workspace.now().plus_seconds(86_400);
    assert_eq!((again.available_at, again.resource), (Some(tomorrow), job.resource));
    workspace.host.run(&again.kind, again.payload.clone(), 1).expect("expired");
    assert_eq!(workspace.finding("R1")["state"], "reopened");
    assert!(cancel().is_empty(), "the acceptance has ended");
}

#[test]
fn a_risk_is_accepted_for_a_year_at_most_or_as_long_as_the_operator_says() {
    let (workspace, finding) = with_finding();
    let accept = |days: i64| {
        let until = workspace.now().plus_seconds(days * 86_400);
        let body = json!({ "to_state": "accepted_risk", "reason": "low", "expires_at": until });
        workspace.host.call(workspace.transition(&finding, body).role(area_sdk::Role::Member))
    };
    let refused = accept(366).expect_err("too long");
    assert_eq!(refused.violations[0].pointer, "/expires_at");
    assert!(refused.violations[0].message.contains("365 days"), "{refused:?}");
    workspace.host.set("max_risk_acceptance_days", "30");
    assert!(accept(31).is_err());
    workspace.host.set("max_risk_acceptance_days", "nonsense");
    assert!(accept(366).is_err());
    accept(365).expect("accepted");
}

/// Stores an evidence record that is a finding at this path, observed now. Returns its id.
fn report(workspace: &Workspace, id: u128, path: &str) -> Uuid {
    let id = Uuid::from_u128(id);
    let record = json!({
        "evidence_id": id, "provider": "pentest", "source_ref": path, "source_type": "web",
        "summary": "No CSRF token.", "observed_at": workspace.now(), "content_sha256": "",
        "kind": "finding",
    });
    workspace.host.put_document("evidence.records", &id.to_string(), record);
    id
}

#[test]
fn an_evidence_record_says_nothing_about_other_findings_of_its_provider() {
    let workspace = Workspace::new();
    let [login, pay] = [(1, "/login"), (2, "/pay")].map(|(id, path)| report(&workspace, id, path));
    workspace.audit_of(json!({ "records": [login, pay] }));
    let finding = |path: &str| {
        let mut all = workspace.findings().into_iter();
        all.find(|finding| finding["paths"] == json!([path])).expect("a finding")
    };
    for (path, id) in [("/login", login), ("/pay", pay)] {
        let all = workspace.transitions_of(&finding(path));
        assert_eq!(all[0]["evidence_ids"], json!([id]));
    }

    workspace.host.advance(60);
    let body = json!({ "to_state": "remediated" });
    workspace.host.call(workspace.transition(&finding("/login"), body)).expect("remediated");
    workspace.host.advance(60);
    let cart = report(&workspace, 3, "/cart");
    workspace.audit_of(json!({ "records": [cart, login, pay] }));
    assert_eq!(finding("/login")["state"], "remediated");
    let again = report(&workspace, 4, "/login");
    workspace.audit_of(json!({ "records": [login, again, cart, pay] }));
    assert_eq!(finding("/login")["state"], "reopened");
}

#[test]
fn a_remedy_is_verified_by_an_audit_or_refuted_by_a_later_scan() {
    let (workspace, finding) = with_finding();
    let found = workspace.upload(&sarif("Tool", &[("R1", "a", "one")]));
    let remediate = || {
        let body = json!({ "to_state": "remediated" });
        workspace.host.call(workspace.transition(&finding, body)).expect("remediated");
    };
    workspace.host.advance(60);
    remediate();
    assert_eq!(workspace.finding("R1")["open"], true, "open until an audit has seen it");
    workspace.audit(&[found]);
    assert_eq!(workspace.finding("R1")["state"], "remediated", "the file is older than the remedy");
    workspace.scan(&sarif("Tool", &[("R1", "a", "one")]));
    assert_eq!(workspace.finding("R1")["state"], "reopened");
    let started = workspace.finding("R1")["lifecycle_started_at"].clone();
    assert_eq!(started, finding["lifecycle_started_at"], "it was never settled");
    remediate();
    workspace.scan(&sarif("Tool", &[]));
    let verified = workspace.finding("R1");
    assert_eq!(verified["state"], "verified");
    let body = json!({ "to_state": "triaged" });
    let refused = workspace.host.call(workspace.transition(&finding, body)).expect_err("refused");
    assert_eq!(code(&refused), Some("transition_not_allowed"));
    assert!(refused.hint.is_some_and(|hint| hint.contains("reopened")));
}

#[test]
fn what_people_have_settled_is_left_alone_by_audits() {
    let (workspace, finding) = with_finding();
    let body = json!({ "to_state": "false_positive", "reason": "test code" });
    workspace.host.call(workspace.transition(&finding, body)).expect("settled");
    let before = workspace.transitions();
    workspace.scan(&sarif("Tool", &[("R1", "a", "one")]));
    workspace.scan(&sarif("Tool", &[]));
    workspace.scan(&sarif("Tool", &[("R1", "a", "one")]));
    assert_eq!(workspace.finding("R1")["state"], "false_positive");
    assert_eq!(workspace.transitions(), before);
}

#[test]
fn owners_are_assigned_by_the_ownership_area() {
    let (workspace, finding) = with_finding();
    let applied = json!({ "preview_id": Uuid::nil(), "assignments": [
        { "finding_id": finding["id"], "assignee_id": USER },
        { "finding_id": Uuid::from_u128(404), "assignee_id": USER },
    ] });
    workspace.host.deliver(Uuid::from_u128(9), "ownership.applied", applied).expect("taken");
    workspace.run_jobs();
    assert_eq!(workspace.finding("R1")["owner_id"], json!(USER));
    let own = Request::to("list_findings").with("limit", 50).with("owner_id", json!(USER));
    assert_eq!(workspace.list(own).len(), 1);
}

#[test]
fn findings_are_filtered() {
    let workspace = Workspace::new();
    workspace
        .scan(&sarif("Tool", &[("R1", "a", "one leak"), ("R2", "b", "two"), ("R2", "c", "three")]));
    let count = |name: &str, value: Value| {
        workspace.list(Request::to("list_findings").with("limit", 50).with(name, value)).len()
    };
    assert_eq!(count("rule", json!("R2")), 2);
    assert_eq!(count("q", json!("LEAK")), 1);
    assert_eq!(count("q", json!("r2")), 2);
    assert_eq!(count("severity", json!("medium")), 3);
    assert_eq!(count("severity", json!("high")), 0);
    assert_eq!(count("state", json!("new")), 3);
    assert_eq!(count("open", json!(false)), 0);
    assert_eq!(count("tool", json!("Tool")), 3);
    assert_eq!(count("repository_id", json!(REPOSITORY)), 3);
    assert_eq!(count("repository_id", json!(Uuid::nil())), 0);
}

/// An event that may change the state of a finding.
#[derive(Clone, Copy, Debug)]
enum LifecycleEvent {
    Asked(FindingState),
    Seen,
    Missed,
    Failed,
}

fn happenings() -> impl Strategy<Value = Vec<LifecycleEvent>> {
    let asked = prop::sample::select(FindingState::ALL.to_vec()).prop_map(LifecycleEvent::Asked);
    let one = prop_oneof![
        4 => asked,
        2 => Just(LifecycleEvent::Seen),
        2 => Just(LifecycleEvent::Missed),
        1 => Just(LifecycleEvent::Failed),
    ];
    prop::collection::vec(one, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Property: the state table allows every transition, versions increase by one, each transition
    /// starts in the state where the previous transition ended, only audits verify findings, and
    /// the finding has the state of its last transition.
    #[test]
    fn every_path_of_a_finding_is_one_the_table_allows(path in happenings()) {
        let (workspace, finding) = with_finding();
        for happening in path {
            match happening {
                LifecycleEvent::Asked(to) => {
                    let mut body = json!({ "to_state": to });
                    if to == FindingState::AcceptedRisk {
                        body["reason"] = json!("r");
                        body["expires_at"] = json!(workspace.now().plus_seconds(1_000_000));
                    }
                    let state = workspace.finding("R1")["state"].clone();
                    let from: FindingState = serde_json::from_value(state).expect("a state");
                    let done = workspace.host.call(workspace.transition(&finding, body)).is_ok();
                    prop_assert_eq!(done, from.next(Actor::Person).contains(&to));
                    let _ = workspace.host.take_jobs();
                }
                LifecycleEvent::Seen => drop(workspace.scan(&sarif("Tool", &[("R1", "a", "one")]))),
                LifecycleEvent::Missed => drop(workspace.scan(&sarif("Tool", &[]))),
                LifecycleEvent::Failed => {
                    let failed = json!({ "invocations": [{ "executionSuccessful": false }] });
                    drop(workspace.scan(&sarif_with("Tool", &[], failed)));
                }
            }
        }
        let mut records = workspace.transitions_of(&finding);
        records.reverse();
        let mut at = Value::Null;
        for (index, record) in records.iter().enumerate() {
            prop_assert_eq!(&record["version"], &json!(index + 1));
            prop_assert_eq!(&record["from_state"], &at);
            let to: FindingState = serde_json::from_value(record["to_state"].clone()).expect("a state");
            if let Ok(from) = serde_json::from_value::<FindingState>(at.clone()) {
                let mover = if record["actor_id"].is_null() { Actor::Service } else { Actor::Person };
                prop_assert!(from.next(mover).contains(&to), "{:?} {:?} {:?}", from, mover, to);
            }
            prop_assert!(to != FindingState::Verified || record["actor_id"].is_null());
            at = record["to_state"].clone();
        }
        let last = workspace.finding("R1");
        prop_assert_eq!(&last["state"], &at);
        prop_assert_eq!(&last["lifecycle_version"], &json!(records.len()));
    }
}
