//! Blobs in a bucket of an S3-compatible service, which hosts of a fleet share in place of a
//! folder.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use assurance_tests::artifacts::{headers_of, path_of, sample};
use assurance_tests::bucket::Bucket;
use assurance_tests::components::fixture;
use assurance_tests::operators::digest;
use assurance_tests::{Backend, Balancer, Builder, Client, TestHost, until};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

const ECHO: &str = "/v1/workspaces/{ws}/fixtures/echo";
const PATIENCE: Duration = Duration::from_secs(60);

/// Content with more than one part of a multipart upload.
fn large() -> Vec<u8> {
    let note = "x".repeat(12 << 20);
    json!({"version": "2.1.0", "runs": [], "properties": {"note": note}}).to_string().into_bytes()
}

/// A host whose connection to its bucket can be interrupted, a workspace owner, and a repository.
async fn host_on_a_line(bucket: &Bucket) -> (TestHost, Client, String, Balancer) {
    let service = bucket.endpoint.trim_start_matches("http://").to_owned();
    let line = Balancer::start(vec![service]).await;
    let builder = Builder::new(Backend::Sqlite).areas(&["catalog", "uploads"]);
    let endpoint = format!("http://{}", line.address());
    let builder = bucket.keeps_blobs_of(builder).set("blobs.endpoint", endpoint);
    let (mut host, ada) = builder.start_with_owner().await;
    host.keep_secret(&bucket.secret);
    let repository = ada.repository("shop").await;
    (host, ada, repository, line)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_that_share_a_bucket_share_content_and_components() {
    if !Backend::Postgres.is_there() {
        return;
    }
    let bucket = Bucket::fresh();
    let areas = |builder: Builder| bucket.keeps_blobs_of(builder.areas(&crate::audits::AREAS));
    // The first host receives content, the second one checks and audits it.
    let first = areas(Builder::new(Backend::Postgres)).set("jobs.enabled", false);
    let (mut one, ada) = first.start_with_owner().await;
    one.keep_secret(&bucket.secret);
    let mut two = areas(Builder::new(Backend::Postgres).beside(&one)).start().await;
    two.keep_secret(&bucket.secret);

    let repository = ada.repository("shop").await;
    for (name, content) in [("large.sarif", large()), ("shop.sarif", sample("shop.sarif"))] {
        let upload = ada.upload(&repository, name, &content).await;
        assert_eq!(upload["validation_stage"], "ready", "{upload}");
    }
    let audit = ada.audit(&repository).await;
    assert_eq!((&audit["state"], &audit["input_count"]), (&json!("completed"), &json!(2)));

    let component = fixture("echo");
    let deployed = one.put_area("echo", &component).await.expect(200);
    assert_eq!(deployed["result"], "live", "{deployed}");
    let at_two = ada.at(&two);
    until("the second host follows", async || at_two.post(ECHO, &json!({})).await.status == 200)
        .await;
    let (objects, prefix) = (bucket.objects(), bucket.prefix());
    assert!(objects.contains(&format!("{prefix}components/{}.wasm", digest(&component))));
    assert!(!objects.contains(&format!("{prefix}trial")), "{objects:?}");
    for host in [&one, &two] {
        assert!(!host.folder().join("data/blobs").exists(), "there is a folder of blobs");
    }
}

/// Sends the header section and the first half of an upload's content.
async fn send_half(host: &TestHost, upload: &Value, content: &[u8]) -> TcpStream {
    let url = upload["upload_url"].as_str().expect("a URL");
    let path = url.strip_prefix(&host.api).expect("a URL of this host");
    let address = host.api.trim_start_matches("http://");
    let mut head = format!("PUT {path} HTTP/1.1\r\nhost: {address}\r\n");
    for (name, value) in headers_of(upload) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", content.len()));
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.write_all(&content[..content.len() / 2]).await.expect("sent");
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_is_cut_off_leaves_neither_object_nor_parts() {
    let bucket = Bucket::fresh();
    let (host, ada, repository, _line) = host_on_a_line(&bucket).await;
    let content = large();
    let upload = ada.begin_upload(&repository, "large.sarif", &content).await;
    let stream = send_half(&host, &upload, &content).await;
    until("the first part comes", async || !bucket.uploads().is_empty()).await;
    drop(stream);
    until("the parts are thrown away", async || bucket.uploads().is_empty()).await;
    assert_eq!(bucket.objects(), Vec::<String>::new());
    ada.put_content(&upload, &content).await.expect(200);
    assert_eq!((bucket.objects().len(), bucket.uploads().len()), (1, 0));
}

/// Waits until the host is degraded. Returns its checks.
async fn degraded(host: &TestHost) -> Value {
    let report = async || host.operate(Method::GET, "/health/ready").await.expect(200);
    until("the host is degraded", async || report().await["status"] == "degraded").await;
    report().await["checks"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_goes_away_is_told_of_and_waited_for() {
    let bucket = Bucket::fresh();
    let (host, ada, repository, line) = host_on_a_line(&bucket).await;
    let component = fixture("echo");
    host.operate(Method::GET, "/health/ready").await.expect(200);

    line.cut();
    for content in [sample("shop.sarif"), large()] {
        let upload = ada.begin_upload(&repository, "scan.sarif", &content).await;
        let refused = ada.put_content(&upload, &content).await;
        refused.problem(503, "unavailable");
        assert!(refused.header("retry-after").is_some(), "{:?}", refused.headers);
    }
    host.put_area("echo", &component).await.problem(503, "unavailable");
    // Only operations that need content fail, so the host stays in service.
    let checks = degraded(&host).await;
    assert!(checks["blobs"] != "ok" && checks["database"] == "ok", "{checks}");
    host.operate(Method::GET, "/health/live").await.expect(200);

    line.mend();
    let ready =
        async || host.operate(Method::GET, "/health/ready").await.expect(200)["status"] == "ready";
    until("the host is ready", ready).await;
    let upload = ada.upload(&repository, "large.sarif", &large()).await;
    assert_eq!(upload["validation_stage"], "ready", "{upload}");
    host.put_area("echo", &component).await.expect(200);
    assert_eq!(bucket.uploads(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_cannot_reach_the_bucket_runs_again() {
    let bucket = Bucket::fresh();
    let (host, ada, repository, line) = host_on_a_line(&bucket).await;
    let content = sample("shop.sarif");
    let upload = ada.begin_upload(&repository, "shop.sarif", &content).await;
    ada.put_content(&upload, &content).await.expect(200);
    line.cut();
    ada.complete_upload(&upload).await.expect(200);
    host.wait_for_log("the blob store failed", PATIENCE).await;
    line.mend();
    ada.settled(&path_of(&upload), "validation_stage", &["ready"]).await;
}

/// Returns the service's credentials file with another secret or mode.
fn altered(bucket: &Bucket, folder: &Path, secret: &str, mode: u32) -> String {
    let file = folder.join(format!("{mode:o}"));
    let text = std::fs::read_to_string(&bucket.credentials_file).expect("the key");
    std::fs::write(&file, text.replace(&bucket.secret, secret)).expect("a file");
    std::fs::set_permissions(&file, Permissions::from_mode(mode)).expect("a mode");
    file.to_string_lossy().into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_cannot_be_used_is_told_before_anything_is_served() {
    let bucket = Bucket::fresh();
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = altered(&bucket, folder.path(), "hush-but-wrong", 0o600);
    let open = altered(&bucket, folder.path(), &bucket.secret, 0o644);
    let key = "blobs.credentials_file";
    for (key, value, told) in [
        (
            "blobs.url",
            "s3://nowhere/x",
            ["NoSuchBucket", "create it, or set blobs.url to another bucket"],
        ),
        ("blobs.url", "s3://closed/x", ["AccessDenied", "may list, get, put and delete"]),
        (key, &wrong, ["SignatureDoesNotMatch", "check the credentials"]),
        (key, &open, ["mode 0644", "chmod 600"]),
        ("blobs.endpoint", "http://127.0.0.1:9", ["onnection refused", "blobs.endpoint"]),
    ] {
        let builder = bucket.keeps_blobs_of(Builder::new(Backend::Sqlite)).set(key, value);
        let mut host = builder.prepare().await;
        let output = host.command(&["serve"]).output().expect("the binary starts");
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(!output.status.success(), "{value}: {text}");
        assert!(told.iter().all(|told| text.contains(told)), "{value}: {text}");
        assert!(!text.contains(&bucket.secret) && !text.contains("hush"), "{text}");
        if key == "blobs.url" {
            // A command that needs no blobs does not access them.
            host.create_person("ada");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_configuration_shows_the_bucket_and_not_its_key() {
    let bucket = Bucket::fresh();
    let host = bucket.keeps_blobs_of(Builder::new(Backend::Sqlite)).prepare().await;
    let output = host.command(&["config", "show"]).output().expect("the binary starts");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains(&bucket.url) && shown.contains(&bucket.credentials_file), "{shown}");
    assert!(!shown.contains(&bucket.secret), "{shown}");
    host.cli(&["config", "check"]);
}
