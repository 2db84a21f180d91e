//! Only one process serves a SQLite database. It stops in order: unready first, nothing lost, and
//! at once after a second signal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use assurance_tests::raw::KeptAlive;
use assurance_tests::receiver::Receiver;
use assurance_tests::{Backend, Builder, Client, TestHost};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::json;
use tokio::net::TcpListener;

const CASES: &str = "/v1/workspaces/{ws}/support/cases";
const WEBHOOKS: &str = "/v1/workspaces/{ws}/webhooks";
/// Number of connections with one request at a time each, like clients of a load balancer.
const CLIENTS: usize = 8;
const PAUSE: Duration = Duration::from_millis(3);
/// Maximum time to stop: longer than the delay before the listener closes plus the time for jobs. A
/// hanging receiver may take 15 s.
const STOPS_WITHIN: Duration = Duration::from_secs(11);

/// Sends requests on kept connections until the host ends them, like a load balancer that knows
/// that the host stops. Returns how many got a response, how many were lost, and how often a
/// connection stayed open while the host was stopping.
async fn ask_until_closed(base: String, stopping: Arc<AtomicBool>) -> (u32, u32, u32) {
    let (mut answered, mut lost, mut kept_open) = (0, 0, 0);
    while let Some(mut connection) = KeptAlive::open(&base).await {
        loop {
            tokio::time::sleep(PAUSE).await;
            let was_stopping = stopping.load(Ordering::SeqCst);
            match connection.get("/openapi.json").await {
                Some(head) if head.contains("connection: close") => {
                    answered += 1;
                    if stopping.load(Ordering::SeqCst) {
                        return (answered, lost, kept_open);
                    }
                    break;
                }
                Some(head) => {
                    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
                    answered += 1;
                    kept_open += u32::from(was_stopping);
                }
                None => {
                    lost += 1;
                    break;
                }
            }
        }
    }
    (answered, lost, kept_open)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_stops_loses_no_request_of_a_kept_connection() {
    let builder = Builder::new(Backend::Sqlite).areas(&["support"]);
    let mut host = builder.set("api.shutdown_delay_ms", 1_000).start().await;
    let stopping = Arc::<AtomicBool>::default();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| tokio::spawn(ask_until_closed(host.api.clone(), Arc::clone(&stopping))))
        .collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let ready = || host.operator(Method::GET, "/health/ready").send();
    assert_eq!(ready().await.expect("an answer").status(), 200);

    host.signal(Signal::TERM);
    let begun = Instant::now();
    while ready().await.expect("an answer").status() != 503 {
        assert!(begun.elapsed() < Duration::from_secs(5), "still ready");
    }
    stopping.store(true, Ordering::SeqCst);
    // It is unready, but still serves clients that have not noticed.
    let late = host.nobody().get("/openapi.json").await;
    assert_eq!(late.status, 200);
    assert_eq!(late.headers["connection"], "close");

    assert!(host.wait().await.success());
    for client in clients {
        let (answered, lost, kept_open) = client.await.expect("no panic");
        assert!(answered > 20, "{answered} answers");
        assert_eq!((lost, kept_open), (0, 0), "of {answered}");
    }
}

/// A host with deliveries for a webhook at this address. Returns the webhook's id.
async fn host_that_delivers_to(base: &str, cases: usize) -> (TestHost, Client, String) {
    let (host, ada) = Builder::new(Backend::Sqlite)
        .areas(&["support", "webhooks"])
        .set("egress.allow_loopback", true)
        .set("api.shutdown_delay_ms", 1_000)
        .start_with_owner()
        .await;
    let hook = ada.subscribe(&format!("{base}/hooks")).await.expect(201);
    for count in 0..cases {
        ada.open_case(&format!("shutdown-{count}")).await.expect(201);
    }
    (host, ada, hook["id"].as_str().expect("an id").to_owned())
}

/// A receiver that accepts and never responds. The task ends after this number of connections.
async fn hanging_receiver(count: usize) -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let came = tokio::spawn(async move {
        let mut open = Vec::new();
        while open.len() < count {
            open.push(listener.accept().await.expect("a connection").0);
        }
        // The connections hang as long as the test runs.
        std::mem::forget((listener, open));
    });
    (base, came)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hanging_jobs_are_cancelled_and_run_again_after_the_next_start() {
    let (base, came) = hanging_receiver(1).await;
    let (mut host, ada, hook) = host_that_delivers_to(&base, 8).await;
    tokio::time::timeout(Duration::from_secs(30), came).await.expect("in time").expect("no panic");
    let begun = Instant::now();
    assert!(host.terminate().await.success());
    assert!(begun.elapsed() < STOPS_WITHIN, "{:?}", begun.elapsed());

    // Without jobs until the webhook has another address, so that no delivery hangs again.
    host.configure(&[("jobs.enabled", false.into())]);
    host.start().await;
    let ada = ada.at(&host);
    let receiver = Receiver::content().await;
    let path = format!("{WEBHOOKS}/{hook}");
    let read = ada.get(&path).await;
    let version = read.version().expect("a version");
    let moved = json!({ "url": format!("{}/hooks", receiver.base) });
    ada.change(Method::PATCH, &path, version, &moved).await.expect(200);
    host.restart(&[("jobs.enabled", true.into())]).await;
    receiver.wait_for(8, Duration::from_secs(60)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_the_host_at_once() {
    let (base, came) = hanging_receiver(1).await;
    let (mut host, ..) = host_that_delivers_to(&base, 1).await;
    tokio::time::timeout(Duration::from_secs(30), came).await.expect("in time").expect("no panic");
    host.signal(Signal::TERM);
    host.wait_for_log("stopping", Duration::from_secs(10)).await;
    let begun = Instant::now();
    host.signal(Signal::TERM);
    let status = host.wait().await;
    assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
    assert_eq!(status.code(), Some(128 + 15));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_on_one_sqlite_database_is_refused() {
    let (mut host, _) = Builder::new(Backend::Sqlite).areas(&["support"]).start_with_owner().await;
    let errors = host.refused(&["serve"]);
    assert!(errors.contains(&format!("is served by process {}", host.pid())), "{errors}");
    assert!(errors.contains("database.allow_several_processes"), "{errors}");
    // Commands open the same database.
    host.cli(&["session", "create", "--user", "ada@example.org"]);
    // The lock ends with the process in every case.
    host.kill9();
    host.start().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_processes_share_a_sqlite_database_where_that_is_allowed() {
    let (host, ada) = Builder::new(Backend::Sqlite)
        .areas(&["support"])
        .set("database.allow_several_processes", true)
        .start_with_owner()
        .await;
    let file = host.folder().join("data/assurance.sqlite");
    let url = format!("sqlite:{}", file.display());
    let other = Builder::new(Backend::Sqlite)
        .areas(&["support"])
        .set("database.url", url)
        .set("database.allow_several_processes", true)
        .start()
        .await;
    ada.open_case("seen-by-both").await.expect(201);
    assert!(ada.at(&other).get(CASES).await.text().contains("seen-by-both"));
}
