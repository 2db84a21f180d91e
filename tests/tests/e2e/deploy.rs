//! Versions of an area: deployed, activated, rolled back and removed, on one node and on a fleet.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use assurance_core::signing::Ed25519PrivateKey;
use assurance_tests::components::{replaced, version};
use assurance_tests::operators::{digest, items};
use assurance_tests::{Backend, Builder, Client, TestHost, both_backends, until};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};

const CASES: &str = "/v1/workspaces/{ws}/support/cases";

async fn area(host: &TestHost) -> Value {
    host.operate(Method::GET, "/areas/support").await.expect(200)
}

async fn steps(host: &TestHost) -> Vec<String> {
    let log = host.operate(Method::GET, "/audit-log?area=support&limit=200").await.expect(200);
    let steps = items(&log["items"]).iter().rev();
    steps.map(|line| line["step"].as_str().expect("a step").to_owned()).collect()
}

both_backends! {
    async fn a_version_is_deployed_rolled_back_and_taken_out_and_the_log_says_so(backend) {
        let (mut host, ada) = Builder::new(backend).start_with_owner().await;
        let (one, two) = (version(1), version(2));
        assert_eq!(host.put_area("support", &one).await.expect(200)["result"], "live");
        assert_eq!(host.put_area("support", &two).await.expect(200)["result"], "live");
        assert_eq!(host.put_area("support", &two).await.expect(200)["result"], "unchanged");
        let told = area(&host).await;
        assert_eq!(told["digest"], digest(&two));
        assert_eq!(told["source"], "deployed");
        assert_eq!(told["previous"]["digest"], digest(&one));
        ada.get(CASES).await.expect(200);

        let reason = json!({"reason": "it is slow"});
        let back = host.operate_with("/areas/support/rollback", &reason).await.expect(200);
        assert_eq!(back["area"]["digest"], digest(&one));
        let nothing = host.operate_with("/areas/support/rollback", &reason).await;
        nothing.problem_about(409, "conflict", "by its digest");

        // The live version survives a restart, whatever its source.
        host.restart(&[]).await;
        let ada = ada.at(&host);
        assert_eq!(host.live_digest("support").await, Some(digest(&one)));
        ada.get(CASES).await.expect(200);

        let wish = json!({"digest": digest(&two), "reason": "it was not slow"});
        host.operate_with("/areas/support/activate", &wish).await.expect(200);
        assert_eq!(host.live_digest("support").await, Some(digest(&two)));
        host.operate(Method::DELETE, "/areas/support?reason=enough").await.expect(200);
        ada.get(CASES).await.problem(404, "not_found");
        assert_eq!(area(&host).await["live"]["digest"], Value::Null);

        let brought = ["received", "verified", "compiled", "checked", "staged"];
        let mut expected = [&brought[..], &["activated"], &brought, &["activated"]].concat();
        expected.extend(brought);
        expected.extend(["rolled_back", "refused", "activated", "removed"]);
        assert_eq!(steps(&host).await, expected);
        let history = host.operate(Method::GET, "/areas/support/history").await.expect(200);
        let stages: Vec<&Value> = items(&history["items"]).iter().map(|v| &v["stage"]).collect();
        assert_eq!(stages, ["withdrawn", "retired"]);
    }

    async fn what_was_taken_out_comes_back_by_a_rollback(backend) {
        let (mut host, mut ada) =
            Builder::new(backend).areas(&["support"]).start_with_owner().await;
        let from_folder = host.live_digest("support").await.expect("it is live");
        let reason = json!({"reason": "it was needed after all"});
        // First the only version, from the folder; then deployed again; then the second of two.
        for brought in [None, Some(version(1)), Some(version(2))] {
            let expected = brought.as_ref().map_or_else(|| from_folder.clone(), |new| digest(new));
            if let Some(new) = brought {
                host.put_area("support", &new).await.expect(200);
            }
            host.operate(Method::DELETE, "/areas/support?reason=oops").await.expect(200);
            ada.get(CASES).await.problem(404, "not_found");
            assert_eq!(area(&host).await["previous"]["digest"], expected.as_str());
            let back = host.operate_with("/areas/support/rollback", &reason).await.expect(200);
            assert_eq!(back["area"]["digest"], expected.as_str());
            ada.get(CASES).await.expect(200);
            host.restart(&[]).await;
            ada = ada.at(&host);
            assert_eq!(host.live_digest("support").await, Some(expected));
        }
    }

    async fn a_rollback_leads_to_a_version_of_the_folder_and_away_from_one(backend) {
        let mut host = Builder::new(backend).areas(&["support"]).start().await;
        let from_folder = host.live_digest("support").await.expect("it is live");
        let [deployed, built] = [version(1), version(2)];
        let back = async |host: &TestHost| {
            let reason = json!({"reason": "it is slow"});
            host.operate_with("/areas/support/rollback", &reason).await.expect(200)
        };
        host.put_area("support", &deployed).await.expect(200);
        assert_eq!(area(&host).await["previous"]["digest"], from_folder.as_str());
        assert_eq!(back(&host).await["area"]["digest"], from_folder.as_str());

        host.put_area("support", &deployed).await.expect(200);
        host.terminate().await;
        std::fs::write(host.areas().join("support.wasm"), &built).expect("written");
        host.start().await;
        let told = area(&host).await;
        assert_eq!((&told["source"], &told["staged"]), (&json!("folder"), &json!([])));
        assert_eq!(told["previous"]["digest"], digest(&deployed));
        let history = host.operate(Method::GET, "/areas/support/history").await.expect(200);
        let live = &history["items"][0];
        assert_eq!((&live["digest"], &live["stage"]), (&json!(digest(&built)), &json!("live")));
        assert_eq!(live["size"], built.len());
        assert!(items(&history["items"])[1..].iter().all(|one| one["stage"] == "retired"));
        assert_eq!(back(&host).await["area"]["digest"], digest(&deployed));
        host.restart(&[]).await;
        assert_eq!(host.live_digest("support").await, Some(digest(&deployed)));
    }

    async fn an_area_that_others_depend_on_is_only_taken_out_by_force(backend) {
        let areas = ["catalog", "evidence", "uploads", "control-room", "ownership", "schedules"];
        let (host, _) = Builder::new(backend).areas(&areas).start_with_owner().await;
        let path = "/areas/control_room?reason=oops";
        let refused = host.operate(Method::DELETE, path).await.problem(409, "conflict");
        let detail = refused["detail"].as_str().expect("text");
        for told in ["ownership subscribes to", "every area may read", "--force"] {
            assert!(detail.contains(told), "{detail}");
        }
        assert!(host.live_digest("control_room").await.is_some());
        let text = host.refused(&["area", "remove", "control_room", "--reason", "x"]);
        assert!(text.contains("ownership"), "{text}");
        host.cli(&["area", "remove", "control_room", "--reason", "it goes", "--force"]);
        assert_eq!(host.live_digest("control_room").await, None);
    }

    async fn a_staged_version_answers_when_it_is_activated(backend) {
        let host = Builder::new(backend).start().await;
        let one = version(1);
        let request = host.operator(Method::PUT, "/areas/support?activate=false").body(one.clone());
        let staged = assurance_tests::client::send(request).await.expect(200);
        assert_eq!(staged["result"], "staged");
        let told = area(&host).await;
        assert_eq!((&told["digest"], &told["source"]), (&Value::Null, &json!("none")));
        assert_eq!(told["staged"][0]["digest"], digest(&one));
        let wish = json!({"digest": digest(&one)});
        host.operate_with("/areas/support/activate", &wish).await.expect(200);
        assert_eq!(host.live_digest("support").await, Some(digest(&one)));
        let wish = json!({"digest": "none"});
        host.operate_with("/areas/support/activate", &wish).await.problem(404, "not_found");
    }
}

/// Writes a version to a file. Returns its path.
fn file(host: &TestHost, component: &[u8]) -> &'static str {
    host.write("support.wasm", component)
}

both_backends! {
    async fn versions_are_named_by_the_begin_of_their_digest_or_their_number(backend) {
        let host = Builder::new(backend).start().await;
        let [one, two, three] = [1, 2, 3].map(version);
        let waiting = host.cli(&["area", "deploy", file(&host, &one)]);
        assert_eq!(waiting["result"], "staged");
        let live = host.cli(&["area", "activate", "support"]);
        assert_eq!(live["result"], "live");
        assert_eq!(live["area"]["digest"], digest(&one));
        let none = host.refused(&["area", "activate", "support"]);
        assert!(none.contains("none that waits"), "{none}");

        for component in [&two, &three] {
            host.cli(&["area", "deploy", file(&host, component)]);
        }
        let several = host.refused(&["area", "activate", "support"]);
        assert!(several.contains(&digest(&two)[..12]), "{several}");
        let several = host.refused(&["area", "activate", "support", "--digest", "0.1.0"]);
        assert!(several.contains(&digest(&three)[..12]), "{several}");
        for component in [&two, &three] {
            let short = &digest(component)[..8];
            host.cli(&["area", "activate", "support", "--digest", short]);
            assert_eq!(host.live_digest("support").await, Some(digest(component)));
        }
        let (back, reason) = (["area", "rollback", "support"], ["--message", "both are slow"]);
        let to = ["--to", &digest(&one)[..6]];
        let back = host.cli(&[&back[..], &reason, &to].concat());
        assert_eq!(back["area"]["digest"], digest(&one));
        assert_eq!(back["replaced"]["digest"], digest(&three));
        // A version that was rolled back becomes live only if it is named.
        let nothing = host.refused(&["area", "rollback", "support", "--reason", "again"]);
        assert!(nothing.contains("was live before"), "{nothing}");
        let unknown = host.refused(&["area", "history", "nosuch"]);
        assert!(unknown.contains("no area") && unknown.contains("area list"), "{unknown}");
        let log = host.operate(Method::GET, "/audit-log?limit=2").await.expect(200);
        assert_eq!(log["items"][1]["why"], "both are slow");
    }

    async fn a_dry_run_reports_every_finding_and_changes_nothing(backend) {
        let host = Builder::new(backend).areas(&["support"]).start().await;
        let before = host.live_digest("support").await;
        let path = file(&host, &version(1));
        let accepted = host.cli(&["area", "deploy", path, "--dry-run", "--activate"]);
        assert_eq!((&accepted["result"], &accepted["findings"]), (&json!("accepted"), &json!([])));

        let path = file(&host, &without_an_operation());
        let output = host
            .command(&["area", "deploy", path, "--dry-run", "--area", "help", "--json"])
            .output();
        let output = output.expect("the binary starts");
        assert_eq!(output.status.code(), Some(1));
        let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(told["result"], "refused", "{told}");
        let codes: Vec<&Value> = items(&told["findings"]).iter().map(|f| &f["code"]).collect();
        assert_eq!(codes, ["validation_failed", "incompatible_version"], "{told}");
        assert_eq!(told["verdict"], "breaking", "{told}");

        let path = file(&host, &version(1));
        let output =
            host.command(&["area", "deploy", path, "--dry-run", "--area", "help"]).output();
        let text = String::from_utf8(output.expect("the binary starts").stdout).expect("text");
        assert!(text.contains("refused") && !text.contains("verdict"), "{text}");
        assert!(text.lines().any(|line| line == "compatibility: safe"), "{text}");

        // A component without exports.
        let path = file(&host, b"\0asm\x0d\0\x01\0");
        let output = host.command(&["area", "deploy", path, "--dry-run"]).output();
        let output = output.expect("the binary starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("refused") && !text.contains("safe"), "{text}");
        assert!(text.contains("not checked:") && text.contains("compatibility"), "{text}");
        assert_eq!(host.live_digest("support").await, before);
        assert_eq!(area(&host).await["staged"], json!([]));
        assert!(steps(&host).await.is_empty(), "nothing is in the audit log");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_of_what_nobody_signed_compiles_nothing() {
    let host = Builder::new(Backend::Sqlite).set("development", false);
    let host = host.set("runtime.cache_dir", "compiled").start().await;
    let path = file(&host, &version(1));
    let output = host.command(&["area", "deploy", path, "--dry-run"]).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && text.contains("signature_refused: "), "{text}");
    let kept = std::fs::read_dir(host.folder().join("compiled")).expect("a folder").count();
    assert_eq!(kept, 0, "compiled code");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_ends_as_requested_although_its_client_disconnects() {
    let host = Builder::new(Backend::Sqlite).set("runtime.cache_dir", "compiled").start().await;
    let request = host.operator(Method::PUT, "/areas/support").body(version(1));
    let deploying = tokio::spawn(request.send());
    until("the service has the component", async || !steps(&host).await.is_empty()).await;
    deploying.abort();
    host.until_live("support", &digest(&version(1))).await;
    let expected = ["received", "verified", "compiled", "checked", "staged", "activated"];
    assert_eq!(steps(&host).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_that_waits_for_a_node_names_it() {
    if !Backend::Postgres.is_there() {
        return;
    }
    let first = Builder::new(Backend::Postgres).start().await;
    let mut second = Builder::new(Backend::Postgres).beside(&first).start().await;
    first.put_area("support", &version(1)).await.expect(200);
    second.until_live("support", &digest(&version(1))).await;
    second.kill9();
    let path = file(&first, &version(2));
    let mut command = first.command(&["area", "deploy", path, "--activate"]);
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut deploying = command.spawn().expect("the binary starts");
    let errors = BufReader::new(deploying.stderr.take().expect("a pipe"));
    let mut errors = errors.lines().map(|line| line.expect("text"));
    let is_wait = |line: &String| line.contains("waiting for 1 of the nodes: ");
    errors.find(is_wait).expect("the command waits for the killed node");
    assert!(deploying.try_wait().expect("its state").is_none(), "it does not wait");
    age_nodes_with(&first, &version(1)).await;
    let errors: Vec<String> = errors.collect();
    assert!(deploying.wait().expect("its end").success(), "{errors:?}");
    assert!(!errors.iter().any(is_wait), "{errors:?}");
}

/// Changes the database as if the nodes that run this version had been silent for 15 s.
async fn age_nodes_with(host: &TestHost, version: &[u8]) {
    let url = host.database_url().expect("a server");
    let mut server = PgConnection::connect(&url).await.expect("a connection");
    for sql in [
        "UPDATE nodes SET seen_at = seen_at - 15000 \
         WHERE id IN (SELECT node FROM area_nodes WHERE digest = $1)",
        "UPDATE area_nodes SET seen_at = seen_at - 15000 WHERE digest = $1",
    ] {
        let changed = sqlx::query(sql).bind(digest(version)).execute(&mut server).await;
        assert!(changed.expect("changed").rows_affected() > 0, "{sql}");
    }
}

/// Returns a version of the support area in which one operation has another name.
fn without_an_operation() -> Vec<u8> {
    replaced(&version(9), "page_support_cases", "sage_support_cases")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_breaking_version_is_refused_with_what_it_breaks_unless_it_is_forced() {
    let host = Builder::new(Backend::Sqlite).start().await;
    host.put_area("support", &version(1)).await.expect(200);
    let breaking = without_an_operation();
    let gone = "operation page_support_cases: is gone";
    let refused = host.put_area("support", &breaking).await;
    refused.problem_about(409, "incompatible_version", gone);
    assert_eq!(host.live_digest("support").await, Some(digest(&version(1))));

    let forced = host.operator(Method::PUT, "/areas/support?force=nobody+pages").body(breaking);
    let forced = assurance_tests::client::send(forced).await.expect(200);
    assert_eq!((&forced["result"], &forced["verdict"]), (&json!("live"), &json!("breaking")));
    let log = host.operate(Method::GET, "/audit-log?limit=1").await.expect(200);
    assert_eq!(log["items"][0]["why"], "nobody pages");
    host.operate_with("/areas/support/rollback", &json!({"reason": "x"})).await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outside_development_only_what_a_trusted_publisher_signed_is_loaded() {
    let key = Ed25519PrivateKey::generate();
    let builder = Builder::new(Backend::Sqlite)
        .areas(&["support", "evidence"])
        .set("development", false)
        .set("areas.publishers.team.public_key", key.public_key_base64())
        .set("areas.publishers.team.areas", vec!["support"]);
    let mut host = builder.start().await;
    assert_eq!(host.live_digest("support").await, None, "an unsigned file is not loaded");
    let unsigned = host.put_area("support", &version(1)).await;
    unsigned.problem_about(403, "signature_refused", "assurance area sign");

    let file = file(&host, &version(1));
    host.sign_component(file, &key);
    let deployed = host.cli(&["area", "deploy", file, "--activate"]);
    assert_eq!(deployed["result"], "live");
    assert!(deployed["took_ms"].is_u64() && deployed["on_every_node_ms"].is_u64(), "{deployed}");

    // The signature is verified again when the host starts, also for the folder.
    host.terminate().await;
    host.sign_component("areas/evidence.wasm", &key);
    host.start().await;
    assert_eq!(host.live_digest("support").await, Some(digest(&version(1))));
    assert_eq!(host.live_digest("evidence").await, None, "the team is not trusted with it");
    assert!(host.log().contains("is not trusted with area \\\"evidence\\\""), "{}", host.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_may_do_what_its_scopes_say_until_it_is_revoked() {
    let mut host = Builder::new(Backend::Sqlite).start().await;
    let made = host.cli(&["token", "create", "--name", "ci", "--scope", "read"]);
    let token = made["token"].as_str().expect("a token").to_owned();
    host.keep_secret(&token);
    let client = Client::nobody(&host.operators);
    let ask = |method: Method, path: &str| {
        assurance_tests::client::send(client.request(method, path).bearer_auth(&token))
    };
    ask(Method::GET, "/areas").await.expect(200);
    ask(Method::DELETE, "/areas/support").await.problem(403, "permission_denied");
    ask(Method::POST, "/areas/support/approve").await.problem(403, "permission_denied");
    host.cli(&["token", "revoke", "--name", "ci"]);
    ask(Method::GET, "/areas").await.problem(401, "unauthenticated");
    // This name in the audit log is reserved for the token of the file.
    let taken = ["token", "create", "--name", "operators.token", "--scope", "read"];
    host.refused(&taken);
    let log = host.operate(Method::GET, "/audit-log").await.expect(200);
    let steps: Vec<&Value> = items(&log["items"]).iter().map(|line| &line["step"]).collect();
    assert_eq!(steps, ["token_revoked", "token_created"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newer_of_file_and_deployment_answers() {
    let builder = Builder::new(Backend::Sqlite).areas(&["support"]).set("areas.watch", true);
    let mut host = builder.start().await;
    let file = host.areas().join("support.wasm");
    assert_eq!(area(&host).await["source"], "folder");

    let deployed = version(1);
    host.put_area("support", &deployed).await.expect(200);
    host.restart(&[]).await;
    assert_eq!(host.live_digest("support").await, Some(digest(&deployed)), "the file is older");

    let built = version(2);
    std::fs::write(&file, &built).expect("written");
    host.until_live("support", &digest(&built)).await;
    host.restart(&[]).await;
    assert_eq!(host.live_digest("support").await, Some(digest(&built)), "the file is newer");

    std::fs::remove_file(&file).expect("removed");
    host.until_live("support", &digest(&deployed)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_of_a_fleet_does_what_an_operator_decides_at_one() {
    if !Backend::Postgres.is_there() {
        return;
    }
    let first = Builder::new(Backend::Postgres).start().await;
    let second = Builder::new(Backend::Postgres).beside(&first).start().await;
    let lonely = Builder::new(Backend::Postgres).beside(&first);
    let lonely = lonely.set("blobs.dir", "elsewhere").set("runtime.cache_dir", "compiled");
    let lonely = lonely.start().await;
    let (one, two) = (version(1), version(2));
    first.put_area("support", &one).await.expect(200);
    let begun = Instant::now();
    second.until_live("support", &digest(&one)).await;
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(5), "the other node took {took:?}");
    second.put_area("support", &two).await.expect(200);
    first.until_live("support", &digest(&two)).await;

    // Each node reports the version it runs; one that cannot load a version reports the reason.
    let failed = until("two nodes run the version and one has failed", async || {
        let nodes = items(&area(&first).await["nodes"]).to_vec();
        let running = nodes.iter().filter(|node| node["digest"] == digest(&two)).count();
        let failed = nodes.iter().find(|node| node["state"] == "failed" && running == 2).cloned();
        failed.ok_or_else(|| Value::from(nodes))
    })
    .await;
    assert!(failed["why"].as_str().expect("a reason").contains("blobs.dir"), "{failed}");
    assert_eq!(lonely.live_digest("support").await, None);

    second.operate_with("/areas/support/rollback", &json!({"reason": "x"})).await.expect(200);
    first.until_live("support", &digest(&one)).await;
    first.operate(Method::DELETE, "/areas/support").await.expect(200);
    until("the other node removes the area", async || {
        second.live_digest("support").await.is_none()
    })
    .await;
}
