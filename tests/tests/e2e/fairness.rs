//! Tests that no client blocks the service for others with connections, many jobs, or a hanging
//! receiver.

use std::time::{Duration, Instant};

use assurance_tests::receiver::Receiver;
use assurance_tests::{Backend, Builder, Client, both_backends, within};
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::audits::{AREAS, AUDITS};

const CASES: &str = "/v1/workspaces/{ws}/support/cases";
const PATIENCE: Duration = Duration::from_secs(10);

async fn open_cases(client: &Client, numbers: std::ops::Range<u32>) {
    for n in numbers {
        client.open_case(&format!("fairness-{n:04}")).await.expect(201);
    }
}

async fn start_audits(client: &Client, count: usize) -> String {
    let repository = client.repository("busy").await;
    for _ in 0..count {
        client.post(AUDITS, &json!({ "repository_id": repository })).await.expect(201);
    }
    repository
}

async fn running_audits(client: &Client) -> usize {
    let running = client.get(&format!("{AUDITS}?state=running&limit=100")).await.expect(200);
    running["items"].as_array().expect("items").len()
}

/// Opens a connection from an address, sends a request, and keeps it open.
async fn idle_connection(from: &str, host: &str) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(format!("{from}:0").parse().expect("an address")).expect("a port");
    let mut stream = socket.connect(host.parse().expect("an address")).await.ok()?;
    stream.write_all(b"GET /nowhere HTTP/1.1\r\nHost: here\r\n\r\n").await.ok()?;
    Some(stream)
}

fn allow_many_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("up to the maximum");
}

both_backends! {
    async fn a_receiver_that_hangs_delays_no_other(backend) {
        let builder = Builder::new(backend).areas(&["support", "webhooks"]);
        let builder = builder.set("egress.allow_loopback", true);
        let (mut host, ada) = builder.start_with_owner().await;
        let bea = host.create_owner("bea", "elsewhere");
        let (silent, healthy, other) =
            (Receiver::silent().await, Receiver::content().await, Receiver::content().await);
        ada.subscribe(&silent.base).await.expect(201);
        open_cases(&ada, 0..40).await;
        ada.subscribe(&healthy.base).await.expect(201);
        bea.subscribe(&other.base).await.expect(201);
        open_cases(&ada, 40..45).await;
        open_cases(&bea, 0..5).await;
        healthy.wait_for(5, PATIENCE).await;
        other.wait_for(5, PATIENCE).await;
        let held = silent.received().len();
        assert!(held <= 4, "{held} at a time, a quarter of the lane");

        // After three failed deliveries the others are not attempted.
        tokio::time::sleep(Duration::from_secs(20)).await;
        let tried = silent.received().len();
        assert!(tried <= 12, "{tried} of 45 were sent to a receiver that hangs");
    }

    async fn many_audits_of_one_workspace_delay_another_by_little(backend) {
        let (mut host, ada) = Builder::new(backend).areas(&AREAS).start_with_owner().await;
        let bea = host.create_owner("bea", "elsewhere");
        let quiet = bea.repository("quiet").await;
        start_audits(&ada, 60).await;
        let begun = Instant::now();
        let audit = bea.audit(&quiet).await;
        let (took, running) = (begun.elapsed(), running_audits(&ada).await);
        assert_eq!(audit["state"], "completed", "{audit:#}");
        assert!(running >= 20, "after {took:?} only {running} of the others' 60 still ran");
    }
}

#[tokio::test]
async fn one_address_cannot_take_all_connections() {
    allow_many_files();
    let builder = Builder::new(Backend::Sqlite).areas(&["support"]);
    // Longer than the test, so that no idle connection is closed and makes room for another one.
    let builder = builder.set("limits.header_timeout_ms", 120_000);
    let (host, ada) = builder.start_with_owner().await;
    let api = host.api.strip_prefix("http://").expect("an address").to_owned();
    let mut open = Vec::new();
    for _ in 0..4_300 {
        open.extend(idle_connection("127.0.0.2", &api).await);
    }
    let begun = Instant::now();
    let answered = tokio::time::timeout(PATIENCE, ada.get(CASES)).await;
    answered.expect("an answer in time").expect(200);
    assert!(begun.elapsed() < Duration::from_secs(5), "after {:?}", begun.elapsed());
    // While the kernel's queue of new connections is full, it lets clients try again after some
    // seconds.
    within(6 * PATIENCE, "3,000 connections are refused", async || {
        let counted = host.metric("assurance_connections_refused_total{listener=\"api\"}").await;
        let refused = counted.expect("counted");
        if refused < 3_000.0 { Err(refused) } else { Ok(()) }
    })
    .await;

    // The first ones were served and are still open.
    let mut answer = [0; 12];
    open[0].read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 404");
}

#[tokio::test]
async fn idle_connections_of_many_addresses_make_room() {
    let builder = Builder::new(Backend::Sqlite).areas(&["support"]);
    let builder = builder.set("api.max_connections", 20);
    let (host, ada) = builder.start_with_owner().await;
    let api = host.api.strip_prefix("http://").expect("an address").to_owned();
    let mut open = Vec::new();
    for n in 2..60 {
        open.extend(idle_connection(&format!("127.0.0.{n}"), &api).await);
    }
    let answered = tokio::time::timeout(PATIENCE, ada.get(CASES)).await;
    answered.expect("an answer in time").expect(200);
}
