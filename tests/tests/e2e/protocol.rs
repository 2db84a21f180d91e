//! Properties of every response: request ids, headers, compression, strict parsing, problems.

use std::io::Write as _;
use std::time::{Duration, Instant};

use assurance_tests::client::{send, try_send};
use assurance_tests::{Answer, Backend, Builder, Client, TestHost, raw};
use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;
use serde_json::json;

const CASES: &str = "/v1/workspaces/{ws}/support/cases";

/// All cases use one host.
#[tokio::test]
async fn every_answer_holds_to_the_protocol() {
    let builder = Builder::new(Backend::Sqlite).areas(&["support"]);
    let (mut host, ada) = builder.start_with_owner().await;
    every_answer_has_a_request_id(&host, &ada).await;
    answers_are_neither_stored_nor_sniffed(&host, &ada).await;
    encoded_letters_of_a_path_are_the_letters(&ada).await;
    a_body_of_an_operation_without_one_is_refused(&ada).await;
    bodies_may_be_compressed(&ada).await;
    who_refuses_every_coding_is_answered_all_the_same(&ada).await;
    what_does_not_unpack_is_refused_and_limits_count_unpacked_bytes(&ada).await;
    a_body_of_another_shape_is_refused_with_pointers(&ada).await;
    paths_and_parameters_are_checked(&ada).await;
    http_that_is_not_http_gets_a_400(&mut host, &ada).await;
    a_head_that_is_out_of_order_gets_a_problem(&host).await;
    who_sends_everything_before_reading_still_gets_the_refusal(&host).await;
    a_problem_has_a_page_that_explains_it(&host, &ada).await;
    head_and_options_are_answered(&ada).await;
}

#[tokio::test]
async fn pages_of_an_allowed_origin_can_read_every_refusal() {
    let app = "https://app.example";
    let builder = Builder::new(Backend::Sqlite).set("api.cors_origins", vec![app]);
    let host = builder.start().await;
    for (host_name, status) in [("x", 401), ("x y", 400)] {
        let request = host.nobody().request(Method::GET, "/v1/auth/session");
        let answer = send(request.header("host", host_name).header("origin", app)).await;
        assert_eq!(answer.status, status, "{host_name}");
        assert_eq!(answer.header("access-control-allow-origin"), Some(app), "{host_name}");
        assert_eq!(answer.header("access-control-allow-credentials"), Some("true"), "{host_name}");
    }
}

/// Sends these bytes as a support case.
async fn post_bytes(client: &Client, encoding: Option<&str>, body: Vec<u8>) -> Answer {
    let key = uuid::Uuid::now_v7().to_string();
    let mut request = client.request(Method::POST, CASES).header("idempotency-key", key);
    if let Some(encoding) = encoding {
        request = request.header("content-encoding", encoding);
    }
    send(request.header("content-type", "application/json").body(body)).await
}

async fn every_answer_has_a_request_id(host: &TestHost, ada: &Client) {
    let fresh = |answer: &Answer| {
        let id = answer.header("x-request-id").expect("a request id").to_owned();
        let parsed = uuid::Uuid::try_parse(&id).expect("a UUID");
        assert_eq!(parsed.get_version_num(), 7);
        id
    };
    let ids = [
        fresh(&ada.get(CASES).await),
        fresh(&ada.get("/nothing").await),
        fresh(&host.nobody().get(CASES).await),
    ];
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
    let with = |id: &'static str| ada.request(Method::GET, CASES).header("x-request-id", id);
    let kept = send(with("my.request_id-01")).await;
    assert_eq!(kept.header("x-request-id"), Some("my.request_id-01"));
    for odd in ["short", "has space in it", "semi;colon;id"] {
        fresh(&send(with(odd)).await);
    }
    let traced = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    fresh(&send(ada.request(Method::GET, CASES).header("traceparent", traced)).await);
}

async fn answers_are_neither_stored_nor_sniffed(host: &TestHost, ada: &Client) {
    for answer in [ada.get(CASES).await, ada.get("/nothing").await, host.nobody().get(CASES).await]
    {
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{}", answer.path);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{}", answer.path);
        assert_eq!(answer.header("access-control-allow-origin"), None, "{}", answer.path);
    }
    assert_eq!(ada.get(CASES).await.header("content-type"), Some("application/json"));
}

async fn encoded_letters_of_a_path_are_the_letters(ada: &Client) {
    ada.get("/v1/workspaces/{ws}/%73upport/cas%65s").await.expect(200);
    ada.get("/v1/%61uth/session").await.expect(200);
    for other in ["%2573upport/cases", "support%2Fcases"] {
        let answer = ada.get(&format!("/v1/workspaces/{{ws}}/{other}")).await;
        answer.problem(404, "not_found");
    }
}

async fn a_body_of_an_operation_without_one_is_refused(ada: &Client) {
    let case = json!({ "subject": "s", "description": "d" });
    let case = ada.post_once(CASES, "first-case", &case).await.expect(201);
    let path = format!("{CASES}/{}/close", case["id"].as_str().expect("an id"));
    let close = |kind: &str, body: &'static str| {
        let request = ada.request(Method::POST, &path).header("idempotency-key", "close-case");
        send(request.header("content-type", kind).body(body))
    };
    close("application/json", r#"{"x": 1}"#).await.problem(422, "validation_failed");
    close("text/plain", "hello").await.problem(422, "validation_failed");
    close("application/json", "").await.expect(200);
    for same in ["{}", " { }\n"] {
        let replayed = close("application/json", same).await;
        assert_eq!(replayed.header("idempotent-replayed"), Some("true"));
    }
    let changed = close("application/json", r#"{"x": 1}"#).await;
    changed.problem_about(422, "validation_failed", "the body");
}

async fn bodies_may_be_compressed(ada: &Client) {
    let case = json!({ "subject": "packed", "description": "d".repeat(5_000) }).to_string();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(case.as_bytes()).expect("packed");
    post_bytes(ada, Some("gzip"), gzip.finish().expect("packed")).await.expect(201);
    post_bytes(ada, Some("zstd"), zstd_frame(case.as_bytes())).await.expect(201);
    for encoding in ["gzip", "br", "zstd"] {
        let request = ada.request(Method::GET, CASES).header("accept-encoding", encoding);
        let answer = send(request).await;
        assert_eq!(answer.header("content-encoding"), Some(encoding));
        assert!(answer.bytes.len() < 2_000, "{} bytes", answer.bytes.len());
    }
}

async fn who_refuses_every_coding_is_answered_all_the_same(ada: &Client) {
    for codings in ["identity;q=0", "*;q=0", "identity;q=0, *;q=0"] {
        let sent = |method, path| ada.request(method, path).header("accept-encoding", codings);
        send(sent(Method::GET, CASES)).await.expect(200);
        let workspace = json!({ "name": format!("refused {codings}") });
        send(sent(Method::POST, "/v1/workspaces").json(&workspace)).await.expect(201);
    }
    let packed = ada.request(Method::GET, "/openapi.json");
    let packed = send(packed.header("accept-encoding", "gzip, *;q=0")).await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
}

/// Returns a Zstandard frame (RFC 8878) of one raw block: a 2-byte content size, one segment, no
/// checksum.
fn zstd_frame(content: &[u8]) -> Vec<u8> {
    let size = u16::try_from(content.len() - 256).expect("256 to 65791 bytes");
    let block = u32::try_from(content.len() << 3 | 1).expect("a small block");
    let head =
        [&[0x28, 0xb5, 0x2f, 0xfd, 0x60][..], &size.to_le_bytes(), &block.to_le_bytes()[..3]];
    [&head.concat(), content].concat()
}

async fn what_does_not_unpack_is_refused_and_limits_count_unpacked_bytes(ada: &Client) {
    post_bytes(ada, Some("gzip"), b"no gzip".to_vec()).await.problem(400, "malformed_request");
    let odd = post_bytes(ada, Some("compress"), b"{}".to_vec()).await;
    odd.problem(415, "unsupported_media_type");
    assert_eq!(odd.header("accept-encoding"), Some("gzip, zstd"));
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    bomb.write_all(&vec![b' '; 64 << 20]).expect("packed");
    let bomb = bomb.finish().expect("packed");
    assert!(bomb.len() < 1 << 20);
    post_bytes(ada, Some("gzip"), bomb).await.problem(413, "payload_too_large");
}

async fn a_body_of_another_shape_is_refused_with_pointers(ada: &Client) {
    let refused = [
        (r#"{"subject":"a","description":"b""#, ""),
        (r#"{"subject":"a","subject":"b","description":"c"}"#, "subject"),
        (r#"{"subject":"a","description":"b","extra":1}"#, "extra"),
        (r#"{"subject":"a"}"#, "description"),
        (r#"{"subject":1,"description":"b"}"#, "/subject"),
        (r#"{"subject":"a\ud800","description":"b"}"#, ""),
        (r#"{"subject":"a\u0000","description":"b"}"#, ""),
        ("[]", ""),
        ("", ""),
    ];
    for (body, named) in refused {
        let answer = post_bytes(ada, None, body.as_bytes().to_vec()).await;
        let problem = answer.problem_about(422, "validation_failed", named);
        assert_eq!(problem["title"], "Validation Failed");
    }
    post_bytes(ada, None, b"{\"subject\":\"\xff\xfe\",\"description\":\"b\"}".to_vec())
        .await
        .problem(422, "validation_failed");
}

async fn paths_and_parameters_are_checked(ada: &Client) {
    ada.in_workspace("not-a-uuid").get(CASES).await.problem(422, "validation_failed");
    ada.get(&format!("{CASES}/not-a-uuid")).await.problem(422, "validation_failed");
    let history = "/v1/workspaces/{ws}/support/case-history";
    ada.get(&format!("{history}?limit=0")).await.problem(422, "validation_failed");
    ada.get(&format!("{history}?limit=1&limit=2")).await.problem(422, "validation_failed");
    ada.get(&format!("{history}?unknown=1")).await.problem(422, "validation_failed");
    ada.get(&format!("{history}?cursor=tampered")).await.problem(422, "validation_failed");
    ada.get(&format!("{history}?status=&cursor=null")).await.expect(200);
}

async fn http_that_is_not_http_gets_a_400(host: &mut TestHost, ada: &Client) {
    let cookie = ada.session.as_deref().unwrap_or_default();
    let path = CASES.replace("{ws}", &ada.workspace);
    for head in [
        format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nbad header\r\n\r\n"),
        format!(
            "GET {path}/%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nCookie: service_session={cookie}\r\n\r\n"
        ),
        "NONSENSE\r\n\r\n".to_owned(),
    ] {
        let answer = raw::exchange(&host.api, head.as_bytes()).await;
        assert_eq!(raw::status(&answer), 400, "{head}: {answer}");
    }
    assert!(host.is_alive());
    ada.get(CASES).await.expect(200);
}

async fn a_head_that_is_out_of_order_gets_a_problem(host: &TestHost) {
    let json = "Content-Type: application/json\r\n";
    let one = "Host: x\r\n";
    for (line, fields) in [
        ("GET /v1/auth/session", String::new()),
        ("GET /v1/auth/session", one.repeat(2)),
        ("GET /v1/auth/session", "Host: x y\r\n".to_owned()),
        ("POST /v1/auth/login", format!("{one}{}Content-Length: 0\r\n", json.repeat(2))),
        ("GET /v1/auth/session", format!("{one}X-Long: {}\r\n", "x".repeat(40_000))),
        ("GET /v1/auth/session", format!("{one}{}", "X-Many: x\r\n".repeat(150))),
        (&format!("GET /v1/auth/session?{}", "x".repeat(50_000)), one.to_owned()),
    ] {
        let head = format!("{line} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n");
        let answer = raw::exchange(&host.api, head.as_bytes()).await;
        assert_eq!(raw::status(&answer), 400, "{fields:.40}: {answer}");
        assert!(answer.contains("\"code\":\"malformed_request\""), "{fields:.40}: {answer}");
    }
}

async fn who_sends_everything_before_reading_still_gets_the_refusal(host: &TestHost) {
    let body = vec![b' '; 64 << 20];
    let json = "Content-Type: application/json\r\n";
    let mut request = format!(
        "POST /v1/auth/login HTTP/1.1\r\nHost: x\r\n{json}Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len(),
    )
    .into_bytes();
    request.extend(body);
    let answer = raw::exchange(&host.api, &request).await;
    assert_eq!(raw::status(&answer), 413, "{answer}");
    assert!(answer.contains("\"code\":\"payload_too_large\""), "{answer}");
}

async fn a_problem_has_a_page_that_explains_it(host: &TestHost, ada: &Client) {
    let problem = ada.get("/v1/nothing").await.problem(404, "not_found");
    let page = problem["type"].as_str().expect("a URI");
    assert!(page.starts_with(&host.api), "{page}");
    let explained = host.nobody().get(page.trim_start_matches(host.api.as_str())).await;
    assert_eq!(explained.status, 200);
    assert!(explained.text().contains("not_found"));
}

async fn head_and_options_are_answered(ada: &Client) {
    let head = send(ada.request(Method::HEAD, CASES)).await;
    assert!(head.status == 200 || head.status == 405, "{}", head.status);
    assert!(head.bytes.is_empty());
    let options = send(ada.request(Method::OPTIONS, CASES)).await;
    assert!([204, 200, 405].contains(&options.status), "{}", options.status);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_lets_requests_in_flight_end() {
    let builder = Builder::new(Backend::Sqlite).fixtures(&["infinite-loop"]);
    // The deadline is longer than the delay before the listener closes.
    let builder = builder.set("limits.deadline_ms", 5_000).set("api.shutdown_delay_ms", 1_000);
    let (mut host, ada) = builder.start_with_owner().await;
    let slow: Vec<_> = (0..4)
        .map(|_| {
            let ada = ada.clone();
            let path = "/v1/workspaces/{ws}/fixtures/infinite-loop";
            tokio::spawn(async move { ada.post(path, &json!({})).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(400)).await;
    let stopping = Instant::now();
    assert!(host.terminate().await.success());
    assert!(stopping.elapsed() > Duration::from_millis(200), "nothing was in flight");
    for request in slow {
        request.await.expect("an answer").problem(504, "area_timeout");
    }
    let gone = try_send(ada.request(Method::GET, CASES)).await;
    assert!(gone.is_err_and(|error| error.is_connect()));
    assert!(!host.folder().join("data/serving.json").exists());
}
