//! Signed evidence, a customer's questionnaire, and the assistant.

use assurance_tests::artifacts::sample;
use assurance_tests::examples::Recorder;
use assurance_tests::model_server::ModelServer;
use assurance_tests::{TestHost, envelope};
use serde_json::{Value, json};

use crate::questionnaires::import;

/// A producer with a key submits an envelope.
pub(super) async fn evidence(recorder: &mut Recorder, host: &TestHost) {
    let producer = json!({ "name": "scanner", "description": "The pipeline of the shop" });
    recorder.create("create_evidence_producer", "producer_id", producer).await;
    let key = host.generate_key();
    let new = json!({ "public_key": key.public_key, "key_id": "scanner-1" });
    recorder.create("create_evidence_producer_key", "id", new).await;
    let unsigned = envelope::unsigned(&recorder.client.workspace, "evidence-of-build-1");
    let signed = host.sign(&key, "scanner-1", &unsigned);
    recorder.send("submit_evidence_envelope", signed).await;
    for operation in [
        "get_evidence_envelope_schema",
        "list_evidence_receipts",
        "list_evidence_producers",
        "list_evidence_producer_keys",
        "revoke_evidence_producer_key",
        "revoke_evidence_producer",
    ] {
        recorder.act(operation).await;
    }
}

/// A questionnaire is imported, answered, approved and exported.
pub(super) async fn questionnaire(recorder: &mut Recorder) {
    let file = sample("questionnaire.csv");
    let answer = import(&recorder.client, "Suppliers", &file).await;
    let imported = answer.expect(201);
    recorder.keep("import_questionnaire", &Value::Null, &answer);
    recorder.set("questionnaire_id", &imported["questionnaire"]);
    recorder.set("question_id", &imported["questions"][0]);
    recorder.send("update_questionnaire", json!({ "title": "Suppliers 2030" })).await;
    let cited = json!([{ "report_id": recorder.id("audit_id"), "quote": "completed" }]);
    let answered = json!({ "answer": "Yes, at every audit.", "citations": cited });
    recorder.send("answer_question", answered).await;
    for operation in [
        "approve_answer",
        "get_question",
        "export_questionnaire",
        "withdraw_approval",
        "list_questions",
        "get_questionnaire",
        "list_questionnaires",
    ] {
        recorder.act(operation).await;
    }
}

/// A model endpoint answers in a conversation; a run that failed is retried.
pub(super) async fn assistant(recorder: &mut Recorder, models: &ModelServer) {
    let endpoint = json!({
        "name": "Main", "base_url": models.base, "api_key": "sk-0123", "model_ids": ["small-1"],
    });
    recorder.create("create_model_endpoint", "model_endpoint_id", endpoint).await;
    let valid = |endpoint: &Value| endpoint["last_validated_at"].is_string();
    recorder.until("get_model_endpoint", valid).await;
    recorder.act("list_model_endpoints").await;
    let conversation = json!({ "title": "Open findings", "message": "Which findings are open?" });
    recorder.create("create_assistant_conversation", "conversation_id", conversation).await;
    let ended = |conversation: &Value| conversation["runs"][0]["status"] == "succeeded";
    recorder.until("get_assistant_conversation", ended).await;

    models.refuse(400);
    let message = json!({ "content": "And which are critical?" });
    let posted = recorder.send("post_assistant_message", message).await;
    recorder.set("run_id", &posted["run"]);
    recorder.until("get_assistant_run", |run| run["status"] == "failed").await;
    recorder.act("retry_assistant_run").await;
    recorder.act("list_assistant_runs").await;
    recorder.act("list_assistant_messages").await;
    recorder.send("update_assistant_conversation", json!({ "status": "closed" })).await;
    recorder.act("list_assistant_conversations").await;
    recorder.send("update_model_endpoint", json!({ "active": false })).await;
    recorder.act("validate_model_endpoint").await;
}
