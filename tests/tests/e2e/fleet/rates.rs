//! Rate limits of a client that spreads its requests over the nodes of a fleet, with the state in
//! PostgreSQL and in Redis.

use std::time::Duration;

use assurance_tests::redis::TestRedis;
use assurance_tests::{Builder, Client};
use serde_json::json;
use sqlx::{Connection as _, PgConnection};

use super::{BOUND, CASES, Fleet, NODES};

const BURST: u32 = 60;
/// Value of `rates.sign_in_per_minute`.
const SIGN_INS: u32 = 12;

fn limited(builder: Builder) -> Builder {
    builder
        .areas(&["support"])
        .set("rates.enabled", true)
        .set("rates.share_ms", 100)
        .set("rates.session_burst", i64::from(BURST))
        .set("rates.session_per_minute", 1)
        .set("rates.standard_units", 1)
}

/// Sends requests to the nodes in turn. Returns how many were admitted.
async fn spread(nodes: &[Client], requests: u32) -> u32 {
    let (mut admitted, mut refused_in_a_row) = (0, 0);
    for node in nodes.iter().cycle().take(requests as usize) {
        let mut status = node.get(CASES).await.status;
        // On a busy machine a node may hear nothing of its database for the test's `BOUND`.
        if status == 503 {
            tokio::time::sleep(BOUND).await;
            status = node.get(CASES).await.status;
        }
        assert!(status == 200 || status == 429, "{status}");
        admitted += u32::from(status == 200);
        refused_in_a_row = if status == 200 { 0 } else { refused_in_a_row + 1 };
        // Once every node refuses, none has to hear of the others' requests.
        if refused_in_a_row < nodes.len() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    admitted
}

async fn is_limited_as_one(nodes: &[Client]) {
    let admitted = spread(nodes, 4 * 60).await;
    // More than one limit, because nodes hear of each other later, but less than the limits of all
    // nodes together.
    assert!((BURST - 10..2 * BURST).contains(&admitted), "{admitted} requests were admitted");
    for node in nodes {
        let refused = node.get(CASES).await;
        refused.problem(429, "rate_limited");
        let status = refused.header("ratelimit").expect("the session's status");
        assert!(status.contains("r=0"), "{status}");
    }
}

/// Asserts that a node refuses a client that used its limit on another node, by fewer requests than
/// the limit allows.
async fn is_refused_elsewhere(limit: u32, request: impl AsyncFn() -> u16) {
    for _ in 0..limit / 2 {
        if request().await == 429 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("{} requests were admitted", limit / 2);
}

async fn sign_in(node: &Client) -> u16 {
    let nobody = format!("{}@example.org", uuid::Uuid::new_v4());
    let body = json!({ "email": nobody, "password": "not the password at all" });
    Client::nobody(&node.base).post("/v1/auth/login", &body).await.status
}

fn nodes(fleet: &Fleet, ada: &Client) -> Vec<Client> {
    (0..NODES).map(|node| fleet.at(node, ada)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_spreads_its_requests_is_limited_as_one() {
    let Some((fleet, ada)) = Fleet::start_fresh(|_, builder| limited(builder)).await else {
        return;
    };
    is_limited_as_one(&nodes(&fleet, &ada)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_spreads_its_requests_is_limited_as_one_by_redis() {
    let redis = TestRedis::start();
    let shape = |_, builder| limited(builder).set("rates.redis_url", redis.url());
    let Some((fleet, ada)) = Fleet::start_fresh(shape).await else { return };
    is_limited_as_one(&nodes(&fleet, &ada)).await;
    let mut database = PgConnection::connect(&fleet.database).await.expect("a connection");
    let rows = sqlx::query_scalar("SELECT count(*) FROM rate_limits").fetch_one(&mut database);
    assert_eq!(rows.await.unwrap_or(-1_i64), 0, "PostgreSQL takes no part in it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_workspaces_and_addresses_are_limited_as_one() {
    let shape = |_, builder| {
        limited(builder)
            .set("rates.workspace_burst", i64::from(2 * BURST))
            .set("rates.workspace_per_minute", 1)
            .set("rates.sign_in_per_minute", i64::from(SIGN_INS))
    };
    let Some((mut fleet, ada)) = Fleet::start_fresh(shape).await else { return };
    let soon = assurance_tests::envelope::now().plus_ms(86_400_000).to_rfc3339();
    let body = json!({ "name": "ci", "role": "viewer", "expires_at": soon });
    let created = ada.post("/v1/workspaces/{ws}/access-tokens", &body).await.expect(201);
    let token = ada.machine(created["token"].as_str().expect("a token"));

    fleet.at(0, &token).until_status(CASES, 429).await;
    let elsewhere = fleet.at(1, &token);
    is_refused_elsewhere(BURST, async || elsewhere.get(CASES).await.status).await;

    // The workspace has half of its limit left; no session uses its own limit twice.
    for name in ["bob", "cem"] {
        let member = fleet.hosts[0].member(name, &ada.workspace, "member");
        fleet.at(0, &member).until_status(CASES, 429).await;
    }
    let dan = fleet.hosts[0].member("dan", &ada.workspace, "member");
    let elsewhere = fleet.at(1, &dan);
    is_refused_elsewhere(BURST, async || elsewhere.get(CASES).await.status).await;

    let (here, elsewhere) = (fleet.at(0, &ada), fleet.at(1, &ada));
    let mut admitted = 0;
    while sign_in(&here).await != 429 {
        admitted += 1;
        assert!(admitted <= 2 * SIGN_INS, "one node limits nothing");
    }
    is_refused_elsewhere(SIGN_INS, async || sign_in(&elsewhere).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_redis_each_node_limits_alone_until_it_is_back() {
    let mut redis = TestRedis::start();
    let url = redis.url();
    let shape = |_, builder| limited(builder).set("rates.redis_url", url.clone());
    let Some((mut fleet, ada)) = Fleet::start_fresh(shape).await else { return };
    let nodes = nodes(&fleet, &ada);
    assert_eq!(spread(&nodes, 6).await, 6);
    redis.stop();
    let alone = spread(&nodes[..1], 2 * BURST).await;
    assert!((BURST - 10..=BURST).contains(&alone), "{alone} requests were admitted");
    assert_eq!(spread(&nodes[1..2], 10).await, 10);

    // Another session uses its burst on the first node; a second one receives it.
    redis.restart();
    let bob = fleet.hosts[0].member("bob", &ada.workspace, "member");
    let on = |node| fleet.at(node, &bob);
    on(0).until_status(CASES, 429).await;
    let elsewhere = on(1);
    is_refused_elsewhere(BURST, async || elsewhere.get(CASES).await.status).await;
    let log = fleet.hosts[0].log();
    assert!(log.contains("applies them alone") && !log.contains("a-password-of"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_are_shared_over_tls_and_an_unknown_certificate_is_refused() {
    let redis = TestRedis::start_with_tls();
    // The last node trusts the certificate of another server only.
    let other = TestRedis::start_with_tls();
    let trusts = |number: usize, builder: Builder| {
        let builder = limited(builder).set("rates.redis_url", redis.url());
        let known = if number + 1 < NODES { &redis } else { &other }.certificate_file();
        builder.environment("SSL_CERT_FILE", known.to_str().expect("a path"))
    };
    let Some((fleet, ada)) = Fleet::start_fresh(trusts).await else { return };
    fleet.at(0, &ada).until_status(CASES, 429).await;
    let elsewhere = fleet.at(1, &ada);
    is_refused_elsewhere(BURST, async || elsewhere.get(CASES).await.status).await;

    let alone = spread(&[fleet.at(NODES - 1, &ada)], BURST / 2).await;
    assert_eq!(alone, BURST / 2, "a node that cannot share applies the whole limit");
    let log = fleet.hosts[NODES - 1].log();
    assert!(log.contains("applies them alone") && !log.contains("a-password-of"), "{log}");
    assert!(!fleet.hosts[0].log().contains("applies them alone"), "the first node shares");
}
