//! Questionnaires (operation 18): files as customers send them, answers with sources, approvals,
//! and export to a file.

use assurance_tests::artifacts::form;
use assurance_tests::client::send;
use assurance_tests::contract::Contract;
use assurance_tests::{Answer, Backend, Builder, Client, TestHost, both_backends, envelope, place};
use reqwest::Method;
use serde_json::{Value, json};

const QUESTIONNAIRES: &str = "/v1/workspaces/{ws}/questionnaires";
const IMPORT: &str = "/v1/workspaces/{ws}/questionnaires/import";
const SMALL: &str = "Ref,Question,Answer\nA1,Is data encrypted?,=Yes\nA2,Who may enter?,\n";

async fn host(backend: Backend) -> (TestHost, Client) {
    Builder::new(backend).areas(&["evidence", "questionnaires"]).start_with_owner().await
}

async fn send_form(client: &Client, parts: &[(&str, Option<&str>, &[u8])]) -> Answer {
    let request = client.request(Method::POST, IMPORT).body(form(parts));
    send(request.header("content-type", "multipart/form-data; boundary=boundary")).await
}

pub(crate) async fn import(client: &Client, title: &str, file: &[u8]) -> Answer {
    let parts = [("file", Some("questions.csv"), file), ("title", None, title.as_bytes())];
    send_form(client, &parts).await
}

fn question_path(import: &Value, nth: usize) -> String {
    let id = |value: &Value| value["id"].as_str().expect("an id").to_owned();
    let (questionnaire, question) = (id(&import["questionnaire"]), id(&import["questions"][nth]));
    format!("{QUESTIONNAIRES}/{questionnaire}/questions/{question}")
}

both_backends! {
    async fn files_are_imported_answered_and_refused(backend) {
        let (host, ada) = host(backend).await;
        let new = async |name: &str| ada.new_workspace(name).await;
        an_import_has_the_contract_s_shape_and_is_kept(&new("imported").await).await;
        an_answer_with_its_source_is_approved_and_exported(&host, &new("answered").await).await;
        newer_evidence_makes_a_citation_stale(&host, &new("stale").await).await;
        what_cannot_be_imported_says_what_to_mend(&new("refused").await).await;
    }

    async fn members_import_and_answer_and_admins_approve(backend) {
        let (mut host, ada) = host(backend).await;
        let viewer = host.member("vera", &ada.workspace, "viewer");
        let member = host.member("mia", &ada.workspace, "member");
        let outsider = host.create_person("olga");
        let outsider = host.sign_in(&outsider, &ada.workspace);
        import(&viewer, "x", SMALL.as_bytes()).await.problem(403, "permission_denied");
        import(&outsider, "x", SMALL.as_bytes()).await.problem(404, "not_found");
        import(&member.without_csrf(), "x", SMALL.as_bytes()).await.problem(403, "csrf_failed");
        let made = import(&member, "x", SMALL.as_bytes()).await.expect(201);
        let path = question_path(&made, 1);
        member.change(Method::PATCH, &path, 1, &json!({ "answer": "Guards." })).await.expect(200);
        let approve = format!("{path}/approve");
        member.post(&approve, &json!({})).await.problem(403, "permission_denied");
        host.member("adam", &ada.workspace, "admin").post(&approve, &json!({})).await.expect(200);
        viewer.get(&path).await.expect(200);
        viewer.change(Method::PATCH, &path, 3, &json!({ "answer": "?" })).await.problem(403, "permission_denied");
        host.nobody().in_workspace(&ada.workspace).get(&path).await.problem(401, "unauthenticated");

        let id = made["questionnaire"]["id"].as_str().expect("an id");
        let whole = format!("{QUESTIONNAIRES}/{id}");
        member.delete(&whole).await.problem(403, "permission_denied");
        ada.delete(&whole).await.expect(204);
        ada.get(&path).await.problem(404, "not_found");
    }
}

async fn an_import_has_the_contract_s_shape_and_is_kept(ada: &Client) {
    let answer = import(ada, "Acme 2026", SMALL.as_bytes()).await;
    let made = answer.expect(201);
    Contract::read().check(18, &made);
    assert_eq!(answer.header("etag"), Some("\"1\""));
    assert_eq!(made["questionnaire"]["question_count"], 2);
    assert_eq!(made["questions"][0]["answer"], "=Yes");
    assert_eq!(made["questions"][0]["status"], "unanswered");
    assert_eq!(made["questionnaire"]["warnings"].as_array().map(Vec::len), Some(1));
    let list = ada.get(QUESTIONNAIRES).await.expect(200);
    assert_eq!(list["items"][0]["filename"], "questions.csv");
    let id = made["questionnaire"]["id"].as_str().expect("an id");
    let shown = ada.get(&format!("{QUESTIONNAIRES}/{id}")).await.expect(200);
    assert_eq!(shown, made["questionnaire"]);
    let questions = ada.get(&format!("{QUESTIONNAIRES}/{id}/questions?limit=1")).await.expect(200);
    assert_eq!(questions["items"][0], made["questions"][0]);
    let next = questions["next_cursor"].as_str().expect("a cursor");
    let rest = format!("{QUESTIONNAIRES}/{id}/questions?limit=1&cursor={next}");
    assert_eq!(ada.get(&rest).await.expect(200)["items"][0], made["questions"][1]);
}

async fn an_answer_with_its_source_is_approved_and_exported(host: &TestHost, ada: &Client) {
    let evidence = envelope::unsigned(&ada.workspace, "evidence-for-answers");
    host.submit_evidence(ada, &evidence).await.expect(201);
    let record = &evidence["records"][0];
    let made = import(ada, "Acme", SMALL.as_bytes()).await.expect(201);
    let path = question_path(&made, 0);
    ada.post(&format!("{path}/approve"), &json!({})).await.problem(409, "question_unanswered");

    let citations = json!([{ "evidence_ids": [record["evidence_id"]], "quote": "a build ran" }]);
    let changes = json!({ "answer": "@all: yes", "citations": citations, "review_notes": "ok" });
    ada.change(Method::PATCH, &path, 7, &changes).await.problem(409, "version_conflict");
    let answered = ada.change(Method::PATCH, &path, 1, &changes).await.expect(200);
    assert_eq!(answered["answer_basis"], "supported");
    let citation = &answered["citations"][0];
    assert_eq!(citation["content_sha256"], record["content_sha256"]);
    assert_eq!(citation["source_key"], record["subject_key"]);
    let approved = ada.post(&format!("{path}/approve"), &json!({})).await.expect(200);
    assert_eq!(approved["status"], "approved");
    assert!(approved["approved_at"].is_string() && approved["approved_by"].is_string());
    let whole = json!({ "questionnaire": made["questionnaire"], "questions": [approved] });
    Contract::read().check(18, &whole);

    let id = made["questionnaire"]["id"].as_str().expect("an id");
    let shown = ada.get(&format!("{QUESTIONNAIRES}/{id}")).await.expect(200);
    assert_eq!((&shown["approved_count"], &shown["version"]), (&json!(1), &json!(2)));
    let export = ada.get(&format!("{QUESTIONNAIRES}/{id}/export")).await.expect(200);
    let csv = export["csv"].as_str().expect("text");
    assert!(csv.contains("A1,Is data encrypted?,'@all: yes,approved,supported,"), "{csv}");
}

async fn newer_evidence_makes_a_citation_stale(host: &TestHost, ada: &Client) {
    let first = envelope::unsigned(&ada.workspace, "first-evidence");
    host.submit_evidence(ada, &first).await.expect(201);
    let made = import(ada, "Acme", SMALL.as_bytes()).await.expect(201);
    let path = question_path(&made, 0);
    let cited = json!([{ "evidence_ids": [first["records"][0]["evidence_id"]] }]);
    ada.change(Method::PATCH, &path, 1, &json!({ "answer": "Yes", "citations": cited }))
        .await
        .expect(200);
    let mut second = envelope::unsigned(&ada.workspace, "second-evidence");
    second["records"][0]["content_sha256"] = json!("0".repeat(64));
    host.submit_evidence(ada, &second).await.expect(201);
    let superseded = |question: &Value| question["citations"][0]["status"] == "superseded";
    let question = ada.until(&path, superseded).await;
    assert_eq!(question["citations"][0]["stale"], true);
    assert_eq!(question["answer_basis"], "unsupported");
}

async fn what_cannot_be_imported_says_what_to_mend(ada: &Client) {
    let refused = import(ada, "x", b"Name,Colour\n1,2\n").await;
    let refused = refused.problem(422, "validation_failed");
    assert!(refused["hint"].as_str().is_some_and(|hint| hint.contains("\"Colour\"")), "{refused}");
    for file in [&b"ID,Question\n1,\xff\n"[..], b"", b"ID,Question\n1,\"open\n", b"ID,Question\n"] {
        let refused = import(ada, "x", file).await.problem(422, "validation_failed");
        assert!(refused["hint"].is_string(), "{refused}");
    }
    import(ada, " ", SMALL.as_bytes()).await.problem(422, "validation_failed");
    let only_title = [("title", None, &b"x"[..])];
    send_form(ada, &only_title).await.problem(422, "validation_failed");
    ada.post(IMPORT, &json!({})).await.problem(415, "unsupported_media_type");
    let large = vec![b'x'; 5 * 1024 * 1024 + 1];
    import(ada, "x", &large).await.problem(413, "payload_too_large");
    assert_eq!(ada.get(QUESTIONNAIRES).await.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn a_file_at_every_limit_is_imported_whole() {
    let (_host, ada) = host(Backend::Sqlite).await;
    let cell = "\"\"".repeat(1_280);
    let rows = (1..=2000).map(|n| format!("{n},\"{cell}\n{n}\"\n"));
    let mut file = format!("ID,Question\n{}", rows.collect::<String>());
    let room = 5 * 1024 * 1024 - file.len();
    file.insert_str(file.find('\n').expect("a line") + 1, &"\n".repeat(room));
    let made = import(&ada, "Large", file.as_bytes()).await.expect(201);
    assert_eq!(made["questions"].as_array().map(Vec::len), Some(2000));
    assert_eq!(made["questionnaire"]["question_count"], 2000);
}

#[tokio::test]
async fn the_files_of_the_corpus_are_imported() {
    let folder = place::corpus().join("questionnaires");
    if !folder.is_dir() {
        return eprintln!("skipped: no corpus at {}", folder.display());
    }
    let (_host, ada) = host(Backend::Sqlite).await;
    for (file, count) in [
        ("asvs-4.0.3-en.csv", 287),
        ("asvs-5.0.0-en.csv", 345),
        ("derived/mvsp-v3.csv", 25),
        ("derived/vsaq-webapp.csv", 73),
    ] {
        let content = std::fs::read(folder.join(file)).expect("a file");
        let made = import(&ada, file, &content).await.expect(201);
        Contract::read().check(18, &made);
        assert_eq!(made["questions"].as_array().map(Vec::len), Some(count), "{file}");
    }
}
