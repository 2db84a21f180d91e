//! Tests of the stages of an upload.

use area_sdk::testing::{Request, USER, WORKSPACE};
use area_sdk::wit::{JobError, Outcome};
use area_sdk::{Role, ScanError, Uuid, Verdict};
use serde_json::{Value, json};

use super::*;

const REPOSITORY: Uuid = Uuid::from_u128(7);

#[test]
fn an_announced_upload_has_exactly_the_fields_of_the_contract() {
    let host = host();
    let upload = announce(&host, announcement("scan.sarif", SARIF));
    let link = host.links().pop().expect("a link");
    let id = upload["id"].as_str().expect("an id");
    let url = format!("https://assurance.test/v1/uploads/{id}/content?signature={}", link.token);
    assert_eq!(
        upload,
        json!({
            "compressed_bytes": SARIF.len(),
            "content_type": "application/json",
            "expires_at": host.now().plus_seconds(3_600),
            "filename": "scan.sarif",
            "id": id,
            "malware_status": "pending",
            "upload_headers": { "Content-Type": "application/json" },
            "upload_url": url,
            "validation_error_code": null,
            "validation_error_detail": null,
            "validation_progress": 0,
            "validation_stage": "awaiting_upload",
            "workspace_id": WORKSPACE,
        })
    );
    assert_eq!(link.claims, json!({ "upload_id": id }));
    assert_eq!(link.expires_at, host.now().plus_seconds(3_600));
}

#[test]
fn who_may_not_send_content_sees_no_url() {
    let host = host();
    let upload = announce(&host, announcement("scan.sarif", SARIF));
    let viewed = host.call(to("get_upload", &upload).role(Role::Viewer)).expect("it").body;
    assert_eq!((&viewed["upload_url"], &viewed["upload_headers"]), (&Value::Null, &json!({})));
    assert_eq!(
        read(&host, &upload)["upload_url"].as_str().map(|url| url.starts_with("https://")),
        Some(true)
    );
}

#[test]
fn content_goes_through_the_stages_and_is_told_of() {
    let host = host();
    host.put_document("catalog.repositories", &REPOSITORY.to_string(), json!({ "name": "web" }));
    let mut wish = announcement("scan.sarif", SARIF);
    wish["repository_id"] = json!(REPOSITORY);
    wish["branch_ref"] = json!("refs/heads/main");
    wish["commit_sha"] = json!("a".repeat(40));
    let upload = announce(&host, wish);
    let sent = host.call(sending(&host, &upload, SARIF)).expect("taken").body;
    assert_eq!(sent["validation_stage"], "uploaded");
    assert_eq!(sent["validation_progress"], 20);
    assert_eq!(host.call(to("complete_upload", &upload)).expect("completed").status, 200);
    host.call(to("complete_upload", &upload)).expect("completed again");

    let jobs = host.take_jobs();
    let jobs: Vec<_> = jobs.iter().filter(|job| job.kind == "process").collect();
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0].resource, upload["id"].as_str().and_then(|id| id.parse().ok()));
    let mut seen = Vec::new();
    let mut payload = jobs[0].payload.clone();
    while let Outcome::Continue(next) = host.run("process", payload, 1).expect("a step") {
        payload = serde_json::from_str(&next).expect("JSON");
        let now = read(&host, &upload);
        seen.push((now["validation_stage"].clone(), now["validation_progress"].clone()));
    }
    assert_eq!(seen, [(json!("scanning"), json!(40)), (json!("validating"), json!(70))]);
    let ready = read(&host, &upload);
    assert_eq!(ready["validation_stage"], "ready");
    assert_eq!(ready["validation_progress"], 100);
    assert_eq!((&ready["malware_status"], &ready["upload_url"]), (&json!("skipped"), &Value::Null));

    let kept = stored(&host);
    assert_eq!((&kept["content_bytes"], &kept["uploaded_by"]), (&json!(SARIF.len()), &json!(USER)));
    assert_eq!((&kept["ready_at"], &kept["received"]), (&json!(host.now()), &Value::Null));
    assert_eq!(host.blobs(), [kept["blob"].as_str().expect("a blob")]);
    let event = host.events().pop().expect("an event");
    assert_eq!(event.name, "upload.ready");
    assert_eq!(
        event.data,
        json!({
            "upload_id": upload["id"], "repository_id": REPOSITORY, "branch_ref": "refs/heads/main",
            "commit_sha": "a".repeat(40), "purpose": "audit", "format": "sarif",
            "content_sha256": kept["content_sha256"],
        })
    );
}

#[test]
fn what_is_announced_must_come() {
    let host = host();
    let mut wish = announcement("scan.sarif", SARIF);
    wish["content_sha256"] = json!("0".repeat(64));
    let upload = announce(&host, wish);
    let code = |content: &[u8]| {
        let refused = host.call(sending(&host, &upload, content)).expect_err("refused");
        (refused.code.unwrap_or_default(), refused.hint.is_some())
    };
    assert_eq!(code(b"short"), ("length_mismatch".to_owned(), true));
    assert_eq!(code(SARIF), ("digest_mismatch".to_owned(), true));
    let early = host.call(to("complete_upload", &upload)).expect_err("nothing there");
    assert_eq!(early.code.as_deref(), Some("content_missing"));
}

#[test]
fn content_can_be_sent_again_until_it_is_completed() {
    let host = host();
    let upload = announce(&host, announcement("scan.sarif", SARIF));
    host.call(sending(&host, &upload, SARIF)).expect("taken");
    host.call(sending(&host, &upload, SARIF)).expect("taken again");
    assert_eq!(host.blobs().len(), 1, "the first is thrown away");
    host.call(to("complete_upload", &upload)).expect("completed");
    let late = host.call(sending(&host, &upload, SARIF)).expect_err("closed");
    assert_eq!(late.code.as_deref(), Some("upload_closed"));
}

#[test]
fn a_link_is_good_for_its_own_upload() {
    let host = host();
    let (one, other) =
        (announce(&host, announcement("a", SARIF)), announce(&host, announcement("b", SARIF)));
    let request = sending(&host, &one, SARIF).link(json!({ "upload_id": other["id"] }));
    assert!(host.call(request).is_err());
}

#[test]
fn an_announcement_names_what_exists_and_can_be_written_down() {
    let host = host();
    let refused = |member: &str, value: Value| {
        let mut wish = announcement("scan.sarif", SARIF);
        wish[member] = value;
        let problem = host.call(Request::to("create_upload").json(wish)).expect_err("refused");
        problem.violations[0].pointer.clone()
    };
    assert_eq!(refused("repository_id", json!(REPOSITORY)), "/repository_id");
    assert_eq!(refused("filename", json!("a\nb")), "/filename");
    assert_eq!(refused("branch_ref", json!("\u{1f33f}".repeat(64))), "/branch_ref");
}

#[test]
fn what_is_infected_is_refused_and_deleted() {
    let host = host();
    host.scanner(|content| {
        assert_eq!(content, SARIF);
        Ok(Verdict::Infected("Eicar-Test-Signature".to_owned()))
    });
    let upload = upload(&host, "scan.sarif", SARIF);
    assert_eq!(upload["validation_stage"], "rejected");
    assert_eq!(upload["malware_status"], "infected");
    assert_eq!(upload["validation_error_code"], "malware_found");
    let detail = upload["validation_error_detail"].as_str().expect("a detail");
    assert!(detail.contains("Eicar-Test-Signature"), "{detail}");
    assert!(host.blobs().is_empty());
    let event = host.events().pop().expect("an event");
    assert_eq!(event.name.as_str(), "upload.rejected");
    assert_eq!(event.data["code"], "malware_found");
}

#[test]
fn what_the_scanner_passes_is_clean() {
    let host = host();
    host.scanner(|_| Ok(Verdict::Clean));
    let upload = upload(&host, "scan.sarif", SARIF);
    assert_eq!(upload["malware_status"], "clean");
    assert_eq!(upload["validation_stage"], "ready");
}

#[test]
fn a_scanner_that_is_away_is_waited_for_but_not_done_without() {
    let host = host();
    host.scanner(|_| Err(ScanError::Unavailable("no such socket".to_owned())));
    let upload = announce(&host, announcement("scan.sarif", SARIF));
    host.call(sending(&host, &upload, SARIF)).expect("taken");
    host.call(to("complete_upload", &upload)).expect("completed");
    let scan = |attempt| {
        let job = json!({ "upload_id": upload["id"], "received": stored(&host)["received"], "step": "scan" });
        host.run("process", job, attempt)
    };
    assert!(matches!(scan(1), Err(JobError::Retry(_))));
    assert!(matches!(scan(crate::PROCESS_ATTEMPTS), Ok(Outcome::Done)));
    assert_eq!(read(&host, &upload)["validation_error_code"], "malware_scan_failed");
    assert!(host.blobs().is_empty());
}

#[test]
fn what_nobody_completes_expires() {
    let host = host();
    let upload = announce(&host, announcement("scan.sarif", SARIF));
    host.call(sending(&host, &upload, SARIF)).expect("taken");
    let job = host.take_jobs().pop().expect("a job");
    assert_eq!(job.kind.as_str(), "expire");
    assert_eq!(job.available_at, Some(host.now().plus_seconds(3_600)));
    host.advance(3_600);
    let late = host.call(sending(&host, &upload, SARIF)).expect_err("late");
    assert_eq!(late.code.as_deref(), Some("upload_closed"));
    host.run("expire", job.payload.clone(), 1).expect("expired");
    let expired = read(&host, &upload);
    assert_eq!(expired["validation_stage"], "expired");
    assert_eq!(expired["validation_error_code"], "upload_expired");
    assert_eq!(expired["upload_url"], Value::Null);
    host.run("expire", job.payload, 1).expect("once more");
}

#[test]
fn the_end_of_an_upload_is_neither_cancelled_nor_given_up() {
    let host = host();
    let upload = announce(&host, announcement("scan.sarif", SARIF));
    let cancel = || {
        let job = host.take_jobs().remove(0);
        let data = json!({
            "job_id": job.id, "area": "uploads", "kind": job.kind, "resource_id": job.resource,
        });
        host.deliver(Uuid::from_u128(9), "job.cancelled", data).expect("handled");
        host.jobs()
    };
    let jobs = cancel();
    let [job] = &jobs[..] else { panic!("one job") };
    let expires_at = host.now().plus_seconds(3_600);
    assert_eq!((job.kind.as_str(), job.available_at), ("expire", Some(expires_at)));

    host.advance(3_600);
    let _ = host.take_jobs();
    host.run(&job.kind, job.payload.clone(), 21).expect("put off");
    let jobs = host.jobs();
    let [again] = &jobs[..] else { panic!("one job") };
    let tomorrow = host.now().plus_seconds(86_400);
    assert_eq!((again.available_at, again.resource), (Some(tomorrow), job.resource));
    host.run(&again.kind, again.payload.clone(), 1).expect("expired");
    assert_eq!(read(&host, &upload)["validation_stage"], "expired");
    assert!(cancel().is_empty(), "the upload has ended");
}

#[test]
fn an_upload_whose_job_died_is_given_up() {
    let host = host();
    let upload = announce(&host, announcement("scan.sarif", SARIF));
    host.call(sending(&host, &upload, SARIF)).expect("taken");
    host.advance(3_500);
    host.call(to("complete_upload", &upload)).expect("completed");
    let expire = || host.run("expire", json!({ "upload_id": upload["id"] }), 1).expect("looked at");
    host.advance(100);
    assert!(matches!(expire(), Outcome::Retry(_)), "the job may still be at it");
    host.advance(3_600);
    assert_eq!(expire(), Outcome::Done);
    assert_eq!(read(&host, &upload)["validation_error_code"], "processing_failed");
    assert_eq!(host.events().pop().expect("an event").name, "upload.rejected");
}

#[test]
fn uploads_are_listed_newest_first_by_stage_and_purpose() {
    let host = host();
    let first = upload(&host, "a.sarif", SARIF);
    host.advance(1);
    let second = announce(&host, announcement("b.sarif", SARIF));
    let ids = |request: Request| {
        let page = host.call(request).expect("a page").body;
        page["items"]
            .as_array()
            .expect("items")
            .iter()
            .map(|item| item["id"].clone())
            .collect::<Vec<_>>()
    };
    let list = || Request::to("list_uploads").with("limit", 50);
    assert_eq!(ids(list()), [second["id"].clone(), first["id"].clone()]);
    assert_eq!(ids(list().with("validation_stage", "ready")), [first["id"].clone()]);
    assert!(ids(list().with("purpose", "evidence")).is_empty());
}
