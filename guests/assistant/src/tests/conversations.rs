//! Conversations: runs with a model, runs without one, and how they fail.

use std::cell::RefCell;
use std::rc::Rc;

use area_sdk::testing::{EgressError, FakeHost, Request, USER, member_names};
use area_sdk::wit::Outcome;
use area_sdk::wit::assurance::area::types::ProblemKind;
use area_sdk::{Role, Uuid};
use serde_json::{Value, json};

use super::{answer, endpoint, host, work};

const FINDING: Uuid = Uuid::from_u128(0xf1);
const SNAPSHOT: Uuid = Uuid::from_u128(0xc1);
const REPOSITORY: Uuid = Uuid::from_u128(0x51);

fn create(host: &FakeHost, body: Value) -> Value {
    let answer = host.call(Request::to("create_assistant_conversation").json(body));
    let answer = answer.expect("a conversation");
    assert_eq!(answer.status, 201);
    answer.body
}

fn show(host: &FakeHost, conversation: &Value) -> Value {
    let request = Request::to("get_assistant_conversation");
    host.call(request.with("conversation_id", conversation["id"].clone())).expect("shown").body
}

fn post(host: &FakeHost, conversation: &Value, body: Value) -> Result<Value, area_sdk::Problem> {
    let request = Request::to("post_assistant_message").json(body);
    let request = request.with("conversation_id", conversation["id"].clone());
    host.call(request).map(|answer| answer.body)
}

/// Stores records as their areas do.
fn records(host: &FakeHost) {
    host.put_document("catalog.repositories", &REPOSITORY.to_string(), json!({ "name": "shop" }));
    let finding = json!({
        "repository_id": REPOSITORY, "risk_severity": "critical", "state": "new", "open": true,
        "rule_id": "CVE-2021-44228", "tool": "grype", "title": "Log4Shell\nAKIAABCDEFGHIJKLMNOP",
    });
    host.put_document("control_room.findings", &FINDING.to_string(), finding);
    let component = json!({
        "repository_id": REPOSITORY, "name": "log4j-core", "version": "2.14.1",
        "ecosystem": "maven", "latest": true, "advisory_key": "CVE-2021-44228",
        "component_id": "c1",
    });
    host.put_document("dependencies.components", "c1", component.clone());
    host.put_document("dependencies.heads", "h1", json!({ "components": 1 }));
    host.put_document("dependencies.matches", "c1/cve-2021-44228", component);
    let audit = json!({
        "repository_id": REPOSITORY, "state": "completed", "started_at": host.now(),
        "completed_at": host.now(), "commit_sha": "abc",
    });
    host.put_document("schedules.audits", &Uuid::from_u128(0xa1).to_string(), audit);
    let questionnaire = json!({ "title": "Acme", "question_count": 2, "approved_count": 1 });
    let id = Uuid::from_u128(0x91).to_string();
    host.put_document("questionnaires.questionnaires", &id, questionnaire);
    host.put_document("questionnaires.questions", &id, json!({ "status": "answered" }));
    let evidence = json!({
        "kind": "policy", "subject_key": "disks", "summary": "Disks are encrypted.",
        "observed_at": host.now(),
    });
    host.put_document("evidence.records", &Uuid::from_u128(0xe1).to_string(), evidence);
    host.put_document("context.snapshots", &SNAPSHOT.to_string(), json!({ "entity_count": 1 }));
}

fn completion(content: &str) -> Value {
    json!({
        "model": "small-2026", "choices": [
            { "message": { "role": "assistant", "content": content }, "finish_reason": "stop" },
        ],
        "usage": { "prompt_tokens": 1200, "completion_tokens": 345,
            "prompt_tokens_details": { "cached_tokens": 1000 } },
    })
}

#[test]
fn an_empty_object_opens_an_empty_conversation() {
    let host = host();
    let made = create(&host, json!({}));
    let expected = "context_snapshot_id created_at created_by id messages runs status title \
        updated_at";
    assert_eq!(member_names(&made), expected);
    assert_eq!(made["messages"], json!([]));
    assert_eq!(made["runs"], json!([]));
    assert_eq!(made["title"], Value::Null);
    assert_eq!((&made["status"], &made["created_by"]), (&json!("open"), &json!(USER)));
    assert!(host.jobs().is_empty());
    assert_eq!(show(&host, &made), made);
    post(&host, &made, json!({ "content": "Hello\nthere" })).expect("said");
    assert_eq!(show(&host, &made)["title"], "Hello");
}

#[test]
fn findings_of_severity_none_are_listed_last() {
    let host = host();
    records(&host);
    let finding = json!({
        "repository_id": REPOSITORY, "risk_severity": "none", "state": "new", "open": true,
        "rule_id": "unused-import", "tool": "lint", "title": "Unused import",
    });
    host.put_document("control_room.findings", &Uuid::from_u128(0xf2).to_string(), finding);
    let made = create(&host, json!({ "message": "Which findings are open?" }));
    assert_eq!(work(&host, 1), Outcome::Done);
    let shown = show(&host, &made);
    let text = shown["messages"][1]["content"].as_str().expect("a text");
    assert!(text.contains("2 open (1 critical, 1 none)"), "{text}");
    assert!(text.contains("[F2] Unused import: none, new"), "{text}");
}

#[test]
fn without_an_endpoint_the_records_answer_and_say_so() {
    let host = host();
    records(&host);
    let made = create(&host, json!({ "message": "Which findings are critical in shop?" }));
    assert_eq!(made["context_snapshot_id"], json!(SNAPSHOT));
    assert_eq!(made["runs"][0]["status"], "queued");
    assert_eq!(made["messages"][0]["structured"], Value::Null);
    assert_eq!(work(&host, 1), Outcome::Done);
    let shown = show(&host, &made);
    let (run, said) = (&shown["runs"][0], &shown["messages"][1]);
    assert_eq!(run["status"], "succeeded");
    assert_eq!(run["specialist"], "workspace");
    assert_eq!(run["route"], "workspace");
    assert_eq!((&run["cost_usd"], &run["input_tokens"]), (&json!("0"), &json!(0)));
    assert_eq!(run["assistant_message_id"], said["id"]);
    let text = said["content"].as_str().expect("text");
    assert!(text.starts_with("No model endpoint is ready"), "{text}");
    assert!(
        text.contains("Findings: 1 open (1 critical). In shop: 1 open (1 critical)."),
        "{text}"
    );
    assert!(text.contains("[F1] Log4Shell [redacted]: critical, new"), "{text}");
    assert_eq!(said["structured"]["citations"][0]["id"], json!(FINDING));
    assert_eq!(said["structured"]["facts"]["open_findings"]["critical"], 1);
    assert_eq!((&said["role"], &said["author_id"]), (&json!("assistant"), &Value::Null));
}

#[test]
fn what_a_question_names_is_looked_up() {
    let host = host();
    records(&host);
    for (question, told) in [
        ("What does CVE-2021-44228 affect?", "[D1] log4j-core 2.14.1: affected by CVE-2021-44228"),
        ("Do we use log4j-core?", "[D1] log4j-core 2.14.1: maven, repository shop"),
        ("Is the questionnaire of Acme done?", "[Q1] Acme: 1 of 2 answers approved"),
        ("When was the last audit?", "[A1] Audit of shop: completed"),
        ("Is there evidence?", "[E1] Disks are encrypted.: policy, about disks"),
    ] {
        let made = create(&host, json!({ "message": question }));
        work(&host, 1);
        let said = show(&host, &made)["messages"][1].clone();
        let text = said["content"].as_str().expect("text");
        assert!(text.contains(told), "{question} {text}");
        assert!(!said["structured"]["citations"].as_array().expect("citations").is_empty());
    }
}

#[test]
fn a_model_is_asked_with_the_records_and_the_key_and_its_answer_counted() {
    let host = host();
    records(&host);
    let prices = r#"{"small": {"input": "0.15", "cached_input": "0.075", "output": "0.60"}}"#;
    host.set("model_prices", prices);
    let main = endpoint(&host);
    let _ = host.take_jobs();
    let made = create(&host, json!({ "title": "Risk", "message": "What about CVE-2021-44228?" }));
    host.network(|_| answer(200, &completion("Fix [F1] first, not [F7].")));
    assert_eq!(work(&host, 1), Outcome::Done);

    let sent = host.sent().pop().expect("sent");
    assert_eq!(sent.method.as_str(), "POST");
    assert_eq!(sent.url.as_str(), "https://models.example/v1/chat/completions");
    let id = main["id"].as_str().expect("an id");
    assert_eq!(sent.bearer, Some(format!("model-endpoint/{id}")));
    let asked: Value = serde_json::from_slice(&sent.body).expect("JSON");
    assert_eq!((&asked["model"], &asked["stream"]), (&json!("small"), &json!(false)));
    let asked = asked.to_string();
    assert!(asked.contains("CVE-2021-44228") && !asked.contains("AKIA"), "{asked}");

    let shown = show(&host, &made);
    let run = &shown["runs"][0];
    let expected = "assistant_message_id cache_hit cached_input_tokens completed_at \
        context_snapshot_id conversation_id cost_usd created_at error_code id input_tokens \
        output_tokens route specialist started_at status user_message_id";
    assert_eq!(member_names(run), expected);
    assert_eq!(run["input_tokens"], 1200);
    assert_eq!(run["cached_input_tokens"], 1000);
    assert_eq!(run["output_tokens"], 345);
    assert_eq!((&run["cache_hit"], &run["cost_usd"]), (&json!(true), &json!("0.000312")));
    assert_eq!((&run["route"], &run["specialist"]), (&json!("Main/small"), &json!("model")));
    assert_eq!(run["user_message_id"], shown["messages"][0]["id"]);
    let said = &shown["messages"][1];
    assert_eq!(said["content"], "Fix [F1] first, not [F7].");
    assert_eq!(said["structured"]["citations"].as_array().map(Vec::len), Some(1));
    assert_eq!(said["structured"]["model"], "small-2026");
    assert_eq!(host.events().pop().expect("an event").data["status"], "succeeded");
}

#[test]
fn what_was_said_before_goes_along() {
    let host = host();
    endpoint(&host);
    let _ = host.take_jobs();
    host.network(|_| answer(200, &completion("First answer.")));
    let made = create(&host, json!({ "message": "First question" }));
    let busy = post(&host, &made, json!({ "content": "Second" })).expect_err("busy");
    assert_eq!(busy.code.as_deref(), Some("run_in_progress"));
    work(&host, 1);
    host.advance(5);
    let wish = json!({ "content": "Second question", "model": "large" });
    let posted = post(&host, &made, wish).expect("said");
    assert_eq!(posted["run"]["route"], "Main/large");
    work(&host, 1);
    let asked: Value = serde_json::from_slice(&host.sent()[1].body).expect("JSON");
    let said: Vec<_> = asked["messages"].as_array().expect("messages")[2..]
        .iter()
        .map(|said| (said["role"].clone(), said["content"].clone()))
        .collect();
    assert_eq!(
        said,
        [
            (json!("user"), json!("First question")),
            (json!("assistant"), json!("First answer.")),
            (json!("user"), json!("Second question")),
        ]
    );
    let list = |operation| {
        let request = Request::to(operation).with("conversation_id", made["id"].clone());
        host.call(request.with("limit", 3)).expect("a list").body
    };
    assert_eq!(list("list_assistant_messages")["items"].as_array().map(Vec::len), Some(3));
    assert!(list("list_assistant_messages")["next_cursor"].is_string());
    assert_eq!(list("list_assistant_runs")["items"][0], show(&host, &made)["runs"][1]);
}

#[test]
fn a_failure_that_passes_is_tried_again_and_one_that_lasts_is_told() {
    let host = host();
    endpoint(&host);
    let _ = host.take_jobs();
    let made = create(&host, json!({ "message": "Hello" }));
    let job = host.take_jobs().remove(0);
    let run = || show(&host, &made)["runs"][0].clone();
    host.network(|_| Err(EgressError::Timeout));
    for attempt in 1..=2 {
        let Outcome::Retry((at, why)) = host.run_to_end(&job.kind, job.payload.clone(), attempt)
        else {
            panic!("tried again")
        };
        assert_eq!(why.as_str(), "timeout");
        assert_eq!(at, host.now().plus_seconds(3 * i64::from(attempt)).0);
        assert_eq!((&run()["status"], &run()["error_code"]), (&json!("queued"), &json!("timeout")));
    }
    assert_eq!(host.run_to_end(&job.kind, job.payload.clone(), 3), Outcome::Done);
    assert_eq!((&run()["status"], &run()["completed_at"]), (&json!("failed"), &json!(host.now())));

    host.advance(5);
    let retry = Request::to("retry_assistant_run")
        .with("conversation_id", made["id"].clone())
        .with("run_id", run()["id"].clone());
    assert_eq!(host.call(retry.clone()).expect("again").status, 201);
    assert_eq!(host.call(retry).expect_err("busy").code.as_deref(), Some("run_in_progress"));
    host.network(|_| answer(401, &json!({})));
    assert_eq!(work(&host, 1), Outcome::Done);
    let runs = show(&host, &made)["runs"].clone();
    assert_eq!(runs[1]["status"], "failed");
    assert_eq!(runs[1]["error_code"], "credential_rejected");
    assert_eq!(runs[1]["user_message_id"], runs[0]["user_message_id"]);
    assert_eq!(show(&host, &made)["messages"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_run_whose_attempts_end_without_a_word_fails_in_the_end() {
    let host = host();
    let made = create(&host, json!({ "message": "Hello" }));
    assert_eq!(work(&host, 4), Outcome::Done);
    assert_eq!(show(&host, &made)["runs"][0]["error_code"], "internal_error");
}

#[test]
fn a_run_whose_job_is_cancelled_fails_and_the_next_message_is_taken() {
    let host = host();
    let made = create(&host, json!({ "message": "Hello" }));
    let job = host.take_jobs().remove(0);
    let cancelled = json!({
        "job_id": job.id, "area": "assistant", "kind": job.kind, "resource_id": job.resource,
        "actor_id": USER,
    });
    host.deliver(Uuid::from_u128(9), "job.cancelled", cancelled).expect("handled");
    let run = show(&host, &made)["runs"][0].clone();
    assert_eq!((&run["status"], &run["error_code"]), (&json!("failed"), &json!("cancelled")));
    assert_eq!(host.events().pop().expect("an event").name, "assistant.run_completed");
    assert_eq!(host.run_to_end(&job.kind, job.payload, 1), Outcome::Done);
    assert_eq!(show(&host, &made)["runs"][0], run, "a retried job does nothing");
    post(&host, &made, json!({ "content": "Again" })).expect("said");
}

#[test]
fn an_endpoint_that_went_away_meanwhile_is_told() {
    let host = host();
    let main = endpoint(&host);
    let _ = host.take_jobs();
    let made = create(&host, json!({ "message": "Hello", "model_endpoint_id": main["id"] }));
    let delete = Request::to("delete_model_endpoint").with("model_endpoint_id", main["id"].clone());
    host.call(delete).expect("deleted");
    assert_eq!(work(&host, 1), Outcome::Done);
    assert_eq!(show(&host, &made)["runs"][0]["error_code"], "endpoint_unavailable");
}

#[test]
fn a_model_that_wants_its_bound_under_another_name_gets_it() {
    let host = host();
    endpoint(&host);
    let _ = host.take_jobs();
    let made = create(&host, json!({ "message": "Hello" }));
    let asked = Rc::new(RefCell::new(0));
    let count = Rc::clone(&asked);
    host.network(move |_| {
        *count.borrow_mut() += 1;
        let refusal = json!({ "error": { "param": "max_tokens", "message": "no" } });
        if *count.borrow() == 1 { answer(400, &refusal) } else { answer(200, &completion("Hi.")) }
    });
    assert_eq!(work(&host, 1), Outcome::Done);
    assert_eq!(*asked.borrow(), 2);
    assert_eq!(show(&host, &made)["messages"][1]["content"], "Hi.");
}

#[test]
fn wishes_that_cannot_be_met_are_refused() {
    let host = host();
    let refused = |wish: Value| {
        let mut body = json!({ "message": "Hello" });
        body.as_object_mut().expect("an object").extend(wish.as_object().expect("one").clone());
        let request = Request::to("create_assistant_conversation").json(body);
        host.call(request).expect_err("refused").violations[0].pointer.clone()
    };
    assert_eq!(refused(json!({ "model": "small" })), "/model");
    assert_eq!(refused(json!({ "model_endpoint_id": REPOSITORY })), "/model_endpoint_id");
    assert_eq!(refused(json!({ "message": " \n" })), "/message");
    let main = endpoint(&host);
    let unknown = json!({ "model_endpoint_id": main["id"], "model": "huge" });
    assert_eq!(refused(unknown), "/model");
    assert!(host.documents("conversations").is_empty());
}

#[test]
fn a_closed_conversation_takes_nothing_until_it_is_opened_again() {
    let host = host();
    let made = create(&host, json!({}));
    let update = |changes: Value| {
        let request = Request::to("update_assistant_conversation").json(changes);
        host.call(request.with("conversation_id", made["id"].clone())).expect("changed").body
    };
    assert_eq!(update(json!({ "status": "closed", "title": " Done " }))["title"], "Done");
    let refused = post(&host, &made, json!({ "content": "Hello" })).expect_err("closed");
    assert_eq!(refused.code.as_deref(), Some("conversation_closed"));
    update(json!({ "status": "open" }));
    post(&host, &made, json!({ "content": "Hello" })).expect("said");
    let list = Request::to("list_assistant_conversations").with("status", "open").with("limit", 5);
    assert_eq!(host.call(list).expect("a list").body["items"][0]["message_count"], 1);
}

#[test]
fn a_conversation_is_deleted_by_its_author_or_an_admin_with_all_that_is_its() {
    let host = host();
    let made = create(&host, json!({ "message": "Hello" }));
    work(&host, 1);
    let delete = |role| {
        let request = Request::to("delete_assistant_conversation").role(role);
        let request = request.by(Uuid::from_u128(99));
        host.call(request.with("conversation_id", made["id"].clone()))
    };
    assert_eq!(delete(Role::Member).expect_err("another's").kind, ProblemKind::PermissionDenied);
    assert_eq!(delete(Role::Admin).expect("deleted").status, 204);
    let job = host.take_jobs().remove(0);
    host.run_to_end(&job.kind, job.payload, 1);
    for collection in ["conversations", "messages", "runs"] {
        assert!(host.documents(collection).is_empty(), "{collection}");
    }
}
