//! Tests of the area through a fake host, and with files of the corpus.

use std::collections::BTreeMap;

use area_sdk::testing::{FakeHost, Request, member_names};
use area_sdk::wit::Outcome;
use area_sdk::wit::assurance::area::types::{Part, ProblemKind};
use area_sdk::{Problem, Role, Timestamp, Uuid};
use area_shared::testing::corpus;
use serde_json::{Value, json};

use crate::{import, names, rows::Rows};

pub(crate) const EVIDENCE: Uuid = Uuid::from_u128(0xe1);
pub(crate) const AUDIT: Uuid = Uuid::from_u128(0xa1);
pub(crate) const REPOSITORY: Uuid = Uuid::from_u128(0x51);

pub(crate) fn send(host: &FakeHost, title: &str, file: &[u8]) -> Result<Value, Problem> {
    let part = |name: &str, filename: Option<&str>, content: &[u8]| Part {
        name: name.to_owned(),
        filename: filename.map(ToOwned::to_owned),
        content_type: None,
        content: content.to_vec(),
    };
    let parts = vec![part("file", Some("q.csv"), file), part("title", None, title.as_bytes())];
    let answer = host.call(Request::to("import_questionnaire").form(parts))?;
    assert_eq!((answer.status, answer.version), (201, Some(1)));
    Ok(answer.body)
}

/// Imports a questionnaire with three questions.
pub(crate) fn three(host: &FakeHost) -> Value {
    let file = "Ref,Question,Answer\nA1,Is data encrypted?,=Yes\nA2,Who may enter?,\nA3,Why?,\n";
    send(host, " Acme ", file.as_bytes()).expect("imported")
}

/// Builds a request about the nth question of an import.
pub(crate) fn about(operation: &str, import: &Value, nth: usize) -> Request {
    Request::to(operation)
        .with("questionnaire_id", import["questionnaire"]["id"].clone())
        .with("question_id", import["questions"][nth]["id"].clone())
}

pub(crate) fn answer(host: &FakeHost, import: &Value, nth: usize, changes: Value) -> Value {
    host.call(about("answer_question", import, nth).json(changes)).expect("answered").body
}

fn questionnaire(host: &FakeHost, import: &Value) -> Value {
    let id = import["questionnaire"]["id"].clone();
    let request = Request::to("get_questionnaire").with("questionnaire_id", id);
    host.call(request).expect("a questionnaire").body
}

/// Stores evidence as its area does.
pub(crate) fn observe(host: &FakeHost, id: Uuid, envelope: u128, content: &str, at: Timestamp) {
    let record = json!({
        "kind": "policy", "subject_key": "encryption", "content_sha256": content.repeat(64),
        "observed_at": at, "summary": "Disks are encrypted.\nWith AES-256.", "source_ref": "wiki",
        "envelope_id": Uuid::from_u128(envelope),
    });
    host.put_document("evidence.records", &id.to_string(), record);
}

/// Stores a completed audit as its area does.
pub(crate) fn audit(host: &FakeHost, id: Uuid, started_at: Timestamp) {
    let body = json!({
        "repository_id": REPOSITORY, "state": "completed", "started_at": started_at,
        "completed_at": host.now(), "commit_sha": "abc",
    });
    host.put_document("schedules.audits", &id.to_string(), body);
    host.put_document("catalog.repositories", &REPOSITORY.to_string(), json!({ "name": "shop" }));
}

#[test]
fn an_import_has_exactly_the_fields_of_the_contract() {
    let host = FakeHost::new(crate::area());
    let made = three(&host);
    let expected = "approved_count created_at id question_count title updated_at version warnings";
    assert_eq!(member_names(&made["questionnaire"]), expected);
    let expected = "answer answer_basis approved_at approved_by citations id position question \
        reference review_notes status version warnings";
    assert_eq!(member_names(&made["questions"][0]), expected);
    assert_eq!(made["questionnaire"]["title"], "Acme");
    assert_eq!(made["questionnaire"]["question_count"], 3);
    let first = &made["questions"][0];
    assert_eq!((&first["position"], &first["reference"]), (&json!(1), &json!("A1")));
    assert_eq!((&first["status"], &first["answer"]), (&json!("unanswered"), &json!("=Yes")));
    assert_eq!((&first["answer_basis"], &first["citations"]), (&json!("unsupported"), &json!([])));
    assert_eq!(first["warnings"], made["questionnaire"]["warnings"]);
    assert_eq!(host.events()[0].name, "questionnaire.imported");
    assert_eq!(host.events()[0].data["warning_count"], 1);
    assert_eq!(questionnaire(&host, &made), made["questionnaire"]);

    let list =
        host.call(Request::to("list_questionnaires").with("limit", 10)).expect("a list").body;
    assert_eq!(list["items"][0]["filename"], "q.csv");
    assert_eq!(list["items"][0]["warning_count"], 1);
    let questions =
        Request::to("list_questions").with("questionnaire_id", made["questionnaire"]["id"].clone());
    let questions = host.call(questions.with("limit", 50)).expect("a list").body;
    assert_eq!(questions["items"], made["questions"]);
}

#[test]
fn what_cannot_be_imported_leaves_nothing_and_says_what_to_mend() {
    let host = FakeHost::new(crate::area());
    let refused = send(&host, "x", b"Name,Colour\n1,2\n").expect_err("no questions");
    assert_eq!(refused.kind, ProblemKind::ValidationFailed);
    assert_eq!(refused.violations[0].pointer, "file");
    assert!(refused.hint.is_some_and(|hint| hint.contains("\"Name\", \"Colour\"")));
    for title in ["", " \t", &"x".repeat(201)] {
        let refused = send(&host, title, b"ID,Question\n1,2\n").expect_err("a title");
        assert_eq!(refused.violations[0].pointer, "title");
    }
    assert!(host.documents("questionnaires").is_empty() && host.events().is_empty());
}

#[test]
fn answers_are_approved_by_somebody_at_some_time() {
    let host = FakeHost::new(crate::area());
    let made = three(&host);
    let approve = |nth| host.call(about("approve_answer", &made, nth).role(Role::Admin));
    let refused = approve(0).expect_err("nobody's answer");
    assert_eq!(refused.code.as_deref(), Some("question_unanswered"));
    for nth in 0..3 {
        let answered = answer(&host, &made, nth, json!({ "answer": "Yes.", "review_notes": "ok" }));
        assert_eq!((&answered["status"], &answered["version"]), (&json!("answered"), &json!(2)));
        let approved = approve(nth).expect("approved").body;
        assert_eq!(approved["status"], "approved");
        assert_eq!(approved["review_notes"], "ok");
        assert_eq!(approved["approved_at"], json!(host.now()));
        assert_eq!(approved["approved_by"], json!(area_sdk::testing::USER));
        assert_eq!(approve(nth).expect("approved").body["version"], 3, "once");
    }
    assert_eq!(questionnaire(&host, &made)["approved_count"], 3);
    assert_eq!(
        host.events().last().map(|event| event.name.clone()).as_deref(),
        Some("questionnaire.approved")
    );

    let changed = answer(&host, &made, 0, json!({ "answer": "No." }));
    assert_eq!((&changed["status"], &changed["approved_by"]), (&json!("answered"), &Value::Null));
    let withdrawn = host.call(about("withdraw_approval", &made, 1)).expect("withdrawn").body;
    assert_eq!((&withdrawn["status"], &withdrawn["answer"]), (&json!("answered"), &json!("Yes.")));
    let cleared = answer(&host, &made, 2, json!({ "answer": null }));
    assert_eq!(cleared["status"], "unanswered");
    assert_eq!(cleared["review_notes"], "ok");
    assert_eq!(questionnaire(&host, &made)["approved_count"], 0);
}

#[test]
fn a_change_to_another_version_is_refused() {
    let host = FakeHost::new(crate::area());
    let made = three(&host);
    for operation in ["answer_question", "approve_answer", "withdraw_approval"] {
        let request = about(operation, &made, 0).json(json!({})).if_match(9);
        let refused = host.call(request).expect_err(operation);
        assert_eq!(refused.kind, ProblemKind::VersionConflict);
    }
    let id = made["questionnaire"]["id"].clone();
    let rename = |version| {
        let request = Request::to("update_questionnaire").with("questionnaire_id", id.clone());
        host.call(request.json(json!({ "title": "New" })).if_match(version))
    };
    assert!(rename(9).is_err());
    assert_eq!(rename(1).expect("renamed").body["title"], "New");
}

#[test]
fn a_question_is_found_in_its_own_questionnaire_only() {
    let host = FakeHost::new(crate::area());
    let (first, second) = (three(&host), three(&host));
    let mixed = Request::to("get_question")
        .with("questionnaire_id", first["questionnaire"]["id"].clone())
        .with("question_id", second["questions"][0]["id"].clone());
    assert_eq!(host.call(mixed).expect_err("another's").kind, ProblemKind::NotFound);
}

#[test]
fn citations_say_what_their_sources_say() {
    let host = FakeHost::new(crate::area());
    observe(&host, EVIDENCE, 1, "a", host.now());
    audit(&host, AUDIT, host.now());
    let made = three(&host);
    let cited = json!([
        { "evidence_ids": [EVIDENCE], "quote": "encrypted. With AES-256" },
        { "report_id": AUDIT, "title": "Audit" },
        { "evidence_ids": [EVIDENCE], "report_id": AUDIT, "quote": "Never said." },
    ]);
    let answered = answer(&host, &made, 0, json!({ "answer": "Yes", "citations": cited }));
    assert_eq!(answered["answer_basis"], "supported");
    let citations = &answered["citations"];
    assert_eq!(
        citations[0],
        json!({
            "content_sha256": "a".repeat(64), "evidence_ids": [EVIDENCE], "observed_at": host.now(),
            "quote": "encrypted. With AES-256", "report_id": null, "report_revision": null,
            "source_key": "encryption", "stale": false, "status": "current",
            "title": "Disks are encrypted.", "warnings": [],
        })
    );
    assert_eq!(citations[1]["report_id"], json!(AUDIT));
    assert_eq!(citations[1]["report_revision"], 1);
    assert_eq!(citations[1]["source_key"], REPOSITORY.to_string());
    assert_eq!(citations[2]["warnings"].as_array().map(Vec::len), Some(1));

    let untitled = answer(&host, &made, 1, json!({ "citations": [{ "report_id": AUDIT }] }));
    assert_eq!(untitled["citations"][0]["title"], "Audit of shop at abc");
    assert_eq!(untitled["status"], "unanswered");
}

#[test]
fn sources_that_are_not_there_cannot_be_cited() {
    let host = FakeHost::new(crate::area());
    observe(&host, EVIDENCE, 1, "a", host.now());
    let made = three(&host);
    for (citation, pointer) in [
        (json!({}), "/citations/1"),
        (json!({ "evidence_ids": [EVIDENCE, AUDIT] }), "/citations/1/evidence_ids/1"),
        (json!({ "report_id": AUDIT }), "/citations/1/report_id"),
    ] {
        let citations = json!({ "citations": [{ "evidence_ids": [EVIDENCE] }, citation] });
        let request = about("answer_question", &made, 0).json(citations);
        assert_eq!(host.call(request).expect_err(pointer).violations[0].pointer, pointer);
    }
    assert!(host.documents("citations").is_empty());
}

/// Returns the status of each citation of a question, and the answer's support.
pub(crate) fn standing(host: &FakeHost, import: &Value) -> (Vec<Value>, Value) {
    let question = host.call(about("get_question", import, 0)).expect("a question").body;
    let citations = question["citations"].as_array().expect("an array");
    for citation in citations {
        assert_eq!(citation["stale"], json!(citation["status"] != "current"));
    }
    let statuses = citations.iter().map(|citation| citation["status"].clone()).collect();
    (statuses, question["answer_basis"].clone())
}

fn deliver(host: &FakeHost, name: &str, data: Value) {
    host.advance(60);
    assert_eq!(host.deliver(Uuid::from_u128(1), name, data), Ok(Outcome::Done));
}

#[test]
fn news_confirm_or_supersede_what_is_cited() {
    let host = FakeHost::new(crate::area());
    observe(&host, EVIDENCE, 1, "a", host.now());
    audit(&host, AUDIT, host.now());
    let made = three(&host);
    let cited = json!([{ "evidence_ids": [EVIDENCE] }, { "report_id": AUDIT }]);
    answer(&host, &made, 0, json!({ "answer": "Yes", "citations": cited }));

    host.advance(80 * 86_400);
    observe(&host, Uuid::from_u128(0xe2), 2, "a", host.now());
    deliver(&host, "evidence_envelope.accepted", json!({ "envelope_id": Uuid::from_u128(2) }));
    host.advance(20 * 86_400);
    assert_eq!(standing(&host, &made), (vec![json!("current"), json!("aged")], json!("partial")));

    let later = Uuid::from_u128(0xa2);
    audit(&host, later, host.now());
    deliver(&host, "audit.completed", json!({ "audit_id": later, "repository_id": REPOSITORY }));
    assert_eq!(standing(&host, &made).0, [json!("current"), json!("superseded")]);

    observe(&host, Uuid::from_u128(0xe3), 3, "b", host.now());
    deliver(&host, "evidence_envelope.accepted", json!({ "envelope_id": Uuid::from_u128(3) }));
    let superseded = vec![json!("superseded"); 2];
    assert_eq!(standing(&host, &made), (superseded.clone(), json!("unsupported")));
    answer(&host, &made, 0, json!({ "citations": cited }));
    assert_eq!(standing(&host, &made).0, superseded, "old news are seen at once");
}

#[test]
fn of_overlapping_audits_the_one_that_started_later_stays_current() {
    let host = FakeHost::new(crate::area());
    let (started_first, later) = (host.now(), Uuid::from_u128(0xa2));
    host.advance(60);
    audit(&host, later, host.now());
    let made = three(&host);
    let cite = |id: Uuid| answer(&host, &made, 0, json!({ "citations": [{ "report_id": id }] }));
    cite(later);
    audit(&host, AUDIT, started_first);
    deliver(&host, "audit.completed", json!({ "audit_id": AUDIT, "repository_id": REPOSITORY }));
    assert_eq!(standing(&host, &made).0, [json!("current")]);
    cite(AUDIT);
    assert_eq!(standing(&host, &made).0, [json!("superseded")]);
}

#[test]
fn the_export_is_the_file_with_what_became_of_it_and_computes_nothing() {
    let host = FakeHost::new(crate::area());
    observe(&host, EVIDENCE, 1, "a", host.now());
    let made = three(&host);
    answer(
        &host,
        &made,
        1,
        json!({ "answer": "A, \"B\"\nC", "citations": [{ "evidence_ids": [EVIDENCE], "title": "@x" }] }),
    );
    let request = Request::to("export_questionnaire")
        .with("questionnaire_id", made["questionnaire"]["id"].clone());
    let export = host.call(request).expect("exported").body;
    assert_eq!(
        export["csv"],
        "Reference,Question,Answer,Status,Basis,Sources,Review notes,Approved at,Approved by\r\n\
         A1,Is data encrypted?,'=Yes,unanswered,unsupported,,,,\r\n\
         A2,Who may enter?,\"A, \"\"B\"\"\nC\",answered,supported,'@x (encryption),,,\r\n\
         A3,Why?,,unanswered,unsupported,,,,\r\n"
    );
    assert_eq!((&export["filename"], &export["question_count"]), (&json!("acme.csv"), &json!(3)));
    let again = import::read(export["csv"].as_str().expect("text").as_bytes()).expect("imported");
    assert_eq!(again.questions[1].answer.as_deref(), Some("A, \"B\"\nC"));
}

#[test]
fn a_large_export_comes_in_parts() {
    let host = FakeHost::new(crate::area());
    let rows = (1..=90).map(|n| format!("{n},{}\n", "q".repeat(32_000)));
    let file = format!("ID,Question\n{}", rows.collect::<String>());
    let made = send(&host, "Large", file.as_bytes()).expect("imported");
    let (mut csv, mut parts, mut cursor) = (String::new(), 0, Value::Null);
    loop {
        let mut request = Request::to("export_questionnaire")
            .with("questionnaire_id", made["questionnaire"]["id"].clone());
        if !cursor.is_null() {
            request = request.with("cursor", cursor);
        }
        let part = host.call(request).expect("a part").body;
        csv += part["csv"].as_str().expect("text");
        parts += 1;
        cursor = part["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((parts, csv.matches("Reference,Question").count()), (2, 1));
    assert_eq!(import::read(csv.as_bytes()).map(|file| file.questions.len()), Ok(90));
}

#[test]
fn a_deleted_questionnaire_goes_with_all_that_is_its() {
    let host = FakeHost::new(crate::area());
    observe(&host, EVIDENCE, 1, "a", host.now());
    let made = three(&host);
    answer(&host, &made, 0, json!({ "citations": [{ "evidence_ids": [EVIDENCE] }] }));
    let id = made["questionnaire"]["id"].clone();
    let delete = Request::to("delete_questionnaire").with("questionnaire_id", id);
    assert_eq!(host.call(delete).expect("deleted").status, 204);
    assert!(host.call(about("get_question", &made, 0)).is_err());
    let job = host.take_jobs().pop().expect("a job");
    host.run_to_end(&job.kind, job.payload, 1);
    for collection in ["questionnaires", "import_warnings", "questions", "citations"] {
        assert!(host.documents(collection).is_empty(), "{collection}");
    }
}

#[test]
fn every_file_of_the_corpus_is_imported_with_the_right_counts() {
    let Some(folder) = corpus("questionnaires") else { return };
    for (file, questions, references, warnings) in [
        ("asvs-4.0.3-en.csv", 287, 287, 2),
        ("asvs-5.0.0-en.csv", 345, 345, 1),
        ("derived/mvsp-v3.csv", 25, 25, 37),
        ("derived/vsaq-webapp.csv", 73, 54, 0),
    ] {
        let content = std::fs::read(folder.join(file)).expect("a file");
        let host = FakeHost::new(crate::area());
        let made = send(&host, file, &content).expect(file);
        let all = made["questions"].as_array().expect("questions");
        let referred = all.iter().filter(|question| question["reference"].is_string()).count();
        let warned = made["questionnaire"]["warnings"].as_array().expect("warnings");
        println!(
            "{file}: {} questions, {referred} references, {} warnings, such as {:?}",
            all.len(),
            warned.len(),
            warned.first()
        );
        assert_eq!(
            (all.len(), referred, warned.len()),
            (questions, references, warnings),
            "{file}: {warned:#?}"
        );
    }
}

/// Parses CSV text. Returns the rows below the header as JSON objects.
fn objects(text: &str) -> Value {
    let rows: Vec<_> = Rows::new(text, b',').collect::<Result<_, _>>().expect("rows");
    let (names, rows) = rows.split_first().expect("a header");
    let object = |row: &crate::rows::Row| {
        let pairs = names.cells().zip(row.cells());
        pairs.map(|(name, cell)| (name.to_owned(), cell.to_owned())).collect::<BTreeMap<_, _>>()
    };
    json!(rows.iter().map(object).collect::<Vec<_>>())
}

#[test]
fn the_vectors_of_csv_spectrum_hold_and_none_of_them_is_a_questionnaire() {
    let Some(folder) = corpus("csv/csv-spectrum") else { return };
    for entry in std::fs::read_dir(folder.join("csvs")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let mut text = std::fs::read_to_string(&path).expect("a file");
        if name.ends_with("_crlf") && !text.contains('\r') {
            // The checkout has normalized the line ends that this vector tests.
            text = text.replace('\n', "\r\n");
        }
        let expected = std::fs::read(folder.join("json").join(&name).with_extension("json"));
        let expected: Value = serde_json::from_slice(&expected.expect("a file")).expect("JSON");
        assert_eq!(objects(&text), expected, "{name}");
        let refused = import::read(text.as_bytes()).expect_err("no questions");
        println!(
            "{name}: {} rows; {} {}",
            expected.as_array().map_or(0, Vec::len),
            refused.message,
            refused.hint
        );
    }
}

#[test]
fn the_documentation_names_every_column_name() {
    let description = names::DESCRIPTION.to_lowercase();
    let words: Vec<&str> = description.split([':', ';', ',', '.']).map(str::trim).collect();
    let lists = [names::QUESTION, names::NOUN, names::VAGUE_QUESTION, names::ANSWER];
    for name in lists.into_iter().flat_map(names::split_names) {
        let plural = ["(s)", "(n)", "(en)"].iter().any(|end| {
            let (open, letters) = (end, &end[1..end.len() - 1]);
            words.iter().any(|word| {
                word.strip_suffix(open)
                    .is_some_and(|word| name == word || name == format!("{word}{letters}"))
            })
        });
        assert!(plural || words.contains(&name), "{name}");
    }
}

#[test]
fn one_operation_is_in_the_contract() {
    let manifest = crate::area().manifest();
    assert_eq!(manifest.routes.iter().filter(|route| route.in_contract).count(), 1);
}
