//! Uploads (operation 20) with signed links that need no session, and the malware scanner.

use std::io::Write as _;
use std::time::Duration;

use assurance_tests::artifacts::path_of;
use assurance_tests::bucket::Bucket;
use assurance_tests::client::send;
use assurance_tests::contract::Contract;
use assurance_tests::{Backend, Builder, Client, TestHost, both_backends, clamd, place};
use serde_json::{Value, json};

const UPLOADS: &str = "/v1/workspaces/{ws}/uploads";
const SARIF: &[u8] = br#"{"version": "2.1.0", "runs": []}"#;

/// A host with content in a folder, or in a bucket for PostgreSQL.
async fn host(backend: Backend) -> (TestHost, Client) {
    let builder = Builder::new(backend).areas(&["catalog", "uploads"]);
    let builder = match backend {
        Backend::Sqlite => builder,
        Backend::Postgres => Bucket::fresh().keeps_blobs_of(builder),
    };
    builder.start_with_owner().await
}

fn announcement(filename: &str, content: &[u8]) -> Value {
    json!({
        "filename": filename,
        "content_type": "application/json",
        "compressed_bytes": content.len(),
        "purpose": "audit",
    })
}

/// Announces, sends and completes content, and waits for the result.
async fn upload(client: &Client, filename: &str, content: &[u8]) -> Value {
    let made = client.post(UPLOADS, &announcement(filename, content)).await.expect(201);
    client.put_content(&made, content).await.expect(200);
    client.complete_upload(&made).await.expect(200);
    settled(client, &made).await
}

async fn settled(client: &Client, upload: &Value) -> Value {
    let stages = ["ready", "rejected", "expired"];
    client.settled(&path_of(upload), "validation_stage", &stages).await
}

both_backends! {
    async fn content_is_announced_sent_and_judged(backend) {
        let (host, ada) = host(backend).await;
        let new = async |name: &str| ada.new_workspace(name).await;
        a_link_is_good_for_what_it_was_signed_for_only(&host, &new("links").await).await;
        what_comes_must_be_what_was_announced(&new("announced").await).await;
        what_is_refused_says_what_to_mend(&new("refused").await).await;
        content_of_any_depth_is_judged_at_once(&new("deep").await).await;
        real_artifacts_are_taken(&new("real").await).await;
        the_largest_upload_is_unpacked(&new("large").await).await;
        the_document_says_that_the_link_is_the_authority(&host).await;
    }

    async fn content_comes_in_by_a_signed_url_and_is_looked_at(backend) {
        let (mut host, ada) = host(backend).await;
        let contract = Contract::read();
        let repository = json!({ "name": "acme/web", "provider": "github" });
        let repository = ada.post("/v1/workspaces/{ws}/repositories", &repository).await.expect(201);
        let mut wish = announcement("scan.sarif", SARIF);
        wish["repository_id"] = repository["id"].clone();
        wish["commit_sha"] = json!("a".repeat(40));
        let made = ada.post(UPLOADS, &wish).await.expect(201);
        contract.check(20, &made);
        assert_eq!(made["validation_stage"], "awaiting_upload");
        let url = made["upload_url"].as_str().expect("a URL").to_owned();
        assert!(url.starts_with(&format!("{}/v1/uploads/", host.api)), "{url}");
        let (_, signature) = url.split_once("signature=").expect("a signature");
        host.keep_secret(signature);

        ada.complete_upload(&made).await.problem(409, "content_missing");
        let sent = ada.put_content(&made, SARIF).await.expect(200);
        contract.check(20, &sent);
        assert_eq!((&sent["validation_stage"], &sent["validation_progress"]), (&json!("uploaded"), &json!(20)));
        contract.check(20, &ada.complete_upload(&made).await.expect(200));
        let ready = settled(&ada, &made).await;
        contract.check(20, &ready);
        assert_eq!((&ready["validation_stage"], &ready["validation_progress"]), (&json!("ready"), &json!(100)));
        assert_eq!((&ready["malware_status"], &ready["upload_url"]), (&json!("skipped"), &Value::Null));
        assert_eq!(ada.complete_upload(&made).await.expect(200), ready, "completing again changes nothing");
        ada.put_content(&made, SARIF).await.problem(409, "upload_closed");
    }

    async fn who_may_announce_see_and_send(backend) {
        let (mut host, ada) = host(backend).await;
        let viewer = host.member("vera", &ada.workspace, "viewer");
        let member = host.member("mia", &ada.workspace, "member");
        let wish = announcement("scan.sarif", SARIF);
        viewer.post(UPLOADS, &wish).await.problem(403, "permission_denied");
        let made = member.post(UPLOADS, &wish).await.expect(201);
        let seen = viewer.get(&path_of(&made)).await.expect(200);
        Contract::read().check(20, &seen);
        assert_eq!((&seen["upload_url"], &seen["upload_headers"]), (&Value::Null, &json!({})));
        viewer.complete_upload(&made).await.problem(403, "permission_denied");

        host.nobody().in_workspace(&ada.workspace).get(&path_of(&made)).await
            .problem(401, "unauthenticated");
        let stranger = host.create_owner("bea", "second");
        stranger.get(&path_of(&made)).await.problem(404, "not_found");
        stranger.in_workspace(&ada.workspace).get(&path_of(&made)).await.problem(404, "not_found");
        ada.without_csrf().post(UPLOADS, &wish).await.problem(403, "csrf_failed");
        ada.get(&format!("{UPLOADS}/nonsense")).await.problem(422, "validation_failed");
        ada.get(&format!("{UPLOADS}/{}", uuid::Uuid::nil())).await.problem(404, "not_found");
        let page = ada.get(&format!("{UPLOADS}?validation_stage=awaiting_upload&limit=1")).await.expect(200);
        assert_eq!((&page["items"][0]["id"], &page["next_cursor"]), (&made["id"], &Value::Null));
    }

    async fn a_link_ends_with_the_membership_of_who_asked_for_it(backend) {
        let (mut host, ada) = host(backend).await;
        let member = host.member("mia", &ada.workspace, "member");
        let made = member.post(UPLOADS, &announcement("scan.sarif", SARIF)).await.expect(201);
        let lowered = ["member", "add", "--workspace", &ada.workspace, "--user", "mia@example.org", "--role", "viewer"];
        host.cli(&lowered);
        // This node caches memberships for at most one second.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        ada.put_content(&made, SARIF).await.problem(403, "permission_denied");
    }

    async fn a_scanner_is_asked_where_there_is_one(backend) {
        let clamd = clamd::start().await;
        let builder = Builder::new(backend).areas(&["uploads"]).set("malware.clamd", clamd);
        let (_host, ada) = builder.start_with_owner().await;
        let clean = upload(&ada, "scan.sarif", SARIF).await;
        assert_eq!((&clean["malware_status"], &clean["validation_stage"]), (&json!("clean"), &json!("ready")));
        let infected = upload(&ada, "scan.sarif", &clamd::eicar()).await;
        assert_eq!((&infected["malware_status"], &infected["validation_stage"]), (&json!("infected"), &json!("rejected")));
        assert_eq!(infected["validation_error_code"], "malware_found");
    }
}

async fn a_link_is_good_for_what_it_was_signed_for_only(host: &TestHost, ada: &Client) {
    let one = ada.post(UPLOADS, &announcement("one", SARIF)).await.expect(201);
    let other = ada.post(UPLOADS, &announcement("other", SARIF)).await.expect(201);
    let url = one["upload_url"].as_str().expect("a URL");
    let (place, signature) = url.split_once("?signature=").expect("a signature");
    let swapped = other["upload_url"]
        .as_str()
        .expect("a URL")
        .replace(other["id"].as_str().expect("an id"), one["id"].as_str().expect("an id"));
    let (payload, code) = signature.split_once('.').expect("two parts");
    let altered = format!("{place}?signature={payload}.{}", code.chars().rev().collect::<String>());
    for bad in [place.to_owned(), altered, swapped, format!("{place}?signature=x")] {
        let answer = send(host.nobody().http.put(&bad).body(SARIF)).await;
        let problem = answer.problem(403, "permission_denied");
        assert!(!problem.to_string().contains(payload), "{problem}");
    }
    // A session does not replace the link, and the link is not valid for other routes.
    let put = ada
        .http
        .put(place)
        .header("cookie", format!("service_session={}", ada.session.clone().expect("one")));
    send(put.body(SARIF)).await.problem(403, "permission_denied");
    let get = format!(
        "{}{}?signature={signature}",
        host.api,
        path_of(&one).replace("{ws}", &ada.workspace)
    );
    send(host.nobody().http.get(get)).await.problem(401, "unauthenticated");
    send(host.nobody().http.put(format!("{url}&more=1")).body(SARIF))
        .await
        .problem(422, "validation_failed");
    let part = host.nobody().http.put(url).header("content-range", "bytes 0-9/20");
    send(part.body(SARIF)).await.problem(400, "malformed_request");
    send(host.nobody().http.put(url).body(SARIF)).await.expect(200);
}

async fn what_comes_must_be_what_was_announced(ada: &Client) {
    let mut wish = announcement("scan.sarif", SARIF);
    wish["content_sha256"] = json!("0".repeat(64));
    let made = ada.post(UPLOADS, &wish).await.expect(201);
    ada.put_content(&made, b"short").await.problem(422, "length_mismatch");
    ada.put_content(&made, SARIF).await.problem(422, "digest_mismatch");
    let too_large = vec![b' '; 26_214_401];
    ada.put_content(&made, &too_large).await.problem(413, "payload_too_large");
    for (member, value) in [
        ("compressed_bytes", json!(0)),
        ("compressed_bytes", json!(26_214_401)),
        ("repository_id", json!(uuid::Uuid::nil())),
        ("commit_sha", json!("main")),
        ("content_type", json!("text/plain\r\nX: y")),
        ("filename", json!("a\u{7}b")),
        ("purpose", json!("nonsense")),
        ("surprise", json!(1)),
    ] {
        let mut wish = announcement("scan.sarif", SARIF);
        wish[member] = value;
        ada.post(UPLOADS, &wish).await.problem_about(422, "validation_failed", member);
    }
}

async fn what_is_refused_says_what_to_mend(ada: &Client) {
    for (name, content, code) in [
        ("broken.json", &b"{\"version\": \"2.1.0\", \"runs\": [}"[..], "malformed_json"),
        ("notes.md", b"Nothing to see.", "unsupported_format"),
        ("cut.gz", &[0x1f, 0x8b, 8, 0, 0, 0], "content_damaged"),
    ] {
        let rejected = upload(ada, name, content).await;
        Contract::read().check(20, &rejected);
        assert_eq!(rejected["validation_stage"], "rejected");
        assert_eq!(rejected["validation_error_code"], code);
        assert!(rejected["validation_error_detail"].as_str().is_some_and(|text| text.len() > 20));
    }
}

async fn content_of_any_depth_is_judged_at_once(ada: &Client) {
    let nested = |begin: &str, depth: usize, end: &str| {
        format!("{}0{}", begin.repeat(depth), end.repeat(depth))
    };
    for content in [
        nested("[", 68, "]"),
        nested("[", 127, "]"),
        nested("{\"vulns\":", 120, "}"),
        nested("[", 100_000, "]"),
    ] {
        let mut wish = announcement("deep.json", content.as_bytes());
        wish["purpose"] = json!("evidence");
        let made = ada.post(UPLOADS, &wish).await.expect(201);
        ada.put_content(&made, content.as_bytes()).await.expect(200);
        ada.complete_upload(&made).await.expect(200);
        assert_eq!(settled(ada, &made).await["validation_stage"], "ready");
        let rejected = upload(ada, "deep.json", content.as_bytes()).await;
        assert_eq!(rejected["validation_error_code"], "unsupported_format");
    }
}

async fn real_artifacts_are_taken(ada: &Client) {
    if !place::corpus().is_dir() {
        eprintln!("skipped: there is no folder of real files (ASSURANCE_CORPUS)");
        return;
    }
    for name in [
        "sarif/semgrep-owasp-benchmark.sarif",
        "cyclonedx/dropwizard-1.2.cdx.json",
        "spdx/alpine-2.3.spdx.json",
        "codeowners/azure-sdk-for-rust.CODEOWNERS",
    ] {
        let content = std::fs::read(place::corpus().join(name)).expect("a real file");
        let ready = upload(ada, name, &content).await;
        assert_eq!(ready["validation_stage"], "ready", "{name}: {ready}");
    }
}

async fn the_largest_upload_is_unpacked(ada: &Client) {
    // Random content, so that the file is large both packed and unpacked.
    let mut content = Vec::from(&br#"{"version":"2.1.0","runs":["#[..]);
    let mut state = 7_u64;
    while content.len() < 26_000_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        content.extend_from_slice(format!("\"{state:016x}\",").as_bytes());
    }
    content.extend_from_slice(b"0]}");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&content).expect("packed");
    let packed = encoder.finish().expect("packed");
    let ready = upload(ada, "large.sarif.gz", &packed).await;
    assert_eq!(ready["validation_stage"], "ready", "{ready}");
}

async fn the_document_says_that_the_link_is_the_authority(host: &TestHost) {
    let document = host.nobody().get("/openapi.json").await.expect(200);
    let put = &document["paths"]["/v1/uploads/{upload_id}/content"]["put"];
    assert_eq!(put["security"], json!([]));
    let parameters = put["parameters"].as_array().expect("parameters");
    let link = parameters.iter().find(|parameter| parameter["name"] == "signature");
    assert_eq!(link.expect("the link")["required"], true);
}
