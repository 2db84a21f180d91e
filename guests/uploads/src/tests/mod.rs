//! Tests of uploads through a fake host.

mod corpus;
mod formats;
mod machine;
mod packing;
mod stages;

use std::sync::atomic::{AtomicUsize, Ordering};

use area_sdk::testing::{FakeHost, Request};
use serde_json::{Value, json};

const SARIF: &[u8] = br#"{"version": "2.1.0", "runs": []}"#;

fn host() -> FakeHost {
    FakeHost::new(crate::area())
}

/// Announces content for an audit.
fn announcement(filename: &str, content: &[u8]) -> Value {
    json!({
        "filename": filename,
        "content_type": "application/json",
        "compressed_bytes": content.len(),
        "purpose": "audit",
    })
}

fn announce(host: &FakeHost, announcement: Value) -> Value {
    host.call(Request::to("create_upload").json(announcement)).expect("an upload").body
}

/// Returns a request that sends content with the upload's own link.
fn sending(host: &FakeHost, upload: &Value, content: &[u8]) -> Request {
    static SENT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("received/{}", SENT.fetch_add(1, Ordering::Relaxed));
    Request::to("put_upload_content")
        .link(json!({ "upload_id": upload["id"] }))
        .with("upload_id", upload["id"].clone())
        .blob(host.put_blob(&name, content))
}

fn to(operation: &str, upload: &Value) -> Request {
    Request::to(operation).with("upload_id", upload["id"].clone())
}

fn read(host: &FakeHost, upload: &Value) -> Value {
    host.call(to("get_upload", upload)).expect("the upload").body
}

/// Runs the upload's job to its end.
fn process(host: &FakeHost) {
    let jobs = host.take_jobs();
    let job = jobs.into_iter().find(|job| job.kind == "process").expect("a job");
    host.run_to_end("process", job.payload, 1);
}

/// Announces, sends, completes and checks content. Returns the upload.
fn upload(host: &FakeHost, filename: &str, content: &[u8]) -> Value {
    upload_as(host, announcement(filename, content), content)
}

fn upload_as(host: &FakeHost, announcement: Value, content: &[u8]) -> Value {
    let made = announce(host, announcement);
    host.call(sending(host, &made, content)).expect("the content is taken");
    host.call(to("complete_upload", &made)).expect("completed");
    process(host);
    read(host, &made)
}

/// Returns the stored upload.
fn stored(host: &FakeHost) -> Value {
    host.documents("uploads").pop().expect("a document")
}

/// Returns the detected format, or the code of the refusal.
fn fate(filename: &str, content: &[u8]) -> String {
    let host = host();
    let upload = upload(&host, filename, content);
    let word = match upload["validation_error_code"].as_str() {
        Some(code) => code.to_owned(),
        None => stored(&host)["format"].as_str().expect("a format").to_owned(),
    };
    let stays = host.blobs().len();
    assert_eq!(stays, usize::from(upload["validation_stage"] == "ready"), "{word}: {stays} blobs");
    word
}

/// Returns the text of the refusal.
fn detail(filename: &str, content: &[u8]) -> String {
    let host = host();
    upload(&host, filename, content);
    stored(&host)["refusal"]["detail"].as_str().expect("a refusal").to_owned()
}
