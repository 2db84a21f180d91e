//! A fleet: three hosts with one PostgreSQL and shared blobs behind a TCP balancer. All follow one
//! decision, any may die, and one that is cut off reports it and does not serve a version that may
//! have been withdrawn.

mod cannot_load;
mod compiled_once;
mod first_deployment;
mod rates;
mod slow_loads;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use assurance_tests::client::{send, try_send};
use assurance_tests::components::{area, version};
use assurance_tests::operators::{digest, items};
use assurance_tests::postgres::Postgres;
use assurance_tests::{Answer, Backend, Balancer, Builder, Client, TestHost, until};
use reqwest::{Method, StatusCode};
use serde_json::json;
use sqlx::{Connection as _, Executor as _, PgConnection};
use test_database::TestDatabase;

use crate::durability::{check_stored, everything};

const CASES: &str = "/v1/workspaces/{ws}/support/cases";
const PATIENCE: Duration = Duration::from_secs(60);
/// Value of `areas.max_stale_ms` in these tests.
const BOUND: Duration = Duration::from_secs(3);
/// Margin for busy machines.
const MARGIN: Duration = Duration::from_secs(4);
const NODES: usize = 3;
const WRITERS: u64 = 4;

/// Gives a host its own machine code folder; the hosts of other tests share one.
fn own_code(builder: Builder) -> Builder {
    builder.set("runtime.cache_dir", "compiled")
}

/// Returns the file with a version's machine code that the nodes share.
fn shared_code(fleet: &Fleet, version: &[u8]) -> PathBuf {
    let folder = fleet.hosts[0].folder().join("data/blobs/compiled");
    let files = std::fs::read_dir(folder).expect("a folder");
    let mut files = files.map(|file| file.expect("a file").path());
    let is_of = |file: &PathBuf| file.to_string_lossy().contains(&digest(version));
    files.find(is_of).expect("machine code")
}

/// Hosts behind a balancer, each with its own connection to the database that can be interrupted.
struct Fleet {
    hosts: Vec<TestHost>,
    lines: Vec<Balancer>,
    balancer: Balancer,
    database: String,
    /// Database of this fleet, if it is not shared.
    _fresh: Option<TestDatabase>,
}

impl Fleet {
    /// Starts three hosts that load these areas from their folders. Returns the owner of a
    /// workspace, who uses the balancer; `None` without a PostgreSQL server.
    async fn start(areas: &[&str]) -> Option<(Self, Client)> {
        Self::start_fresh(|_, builder| builder.areas(areas)).await
    }

    /// Starts a fleet on a new database.
    async fn start_fresh(shape: impl Fn(usize, Builder) -> Builder) -> Option<(Self, Client)> {
        let database = TestDatabase::create().await?;
        let (fleet, ada) = Self::start_on(database.url(), shape).await;
        Some((Self { _fresh: Some(database), ..fleet }, ada))
    }

    async fn start_on(
        database: String,
        shape: impl Fn(usize, Builder) -> Builder,
    ) -> (Self, Client) {
        let (server, name) = split(&database);
        let (mut hosts, mut lines) = (Vec::<TestHost>::new(), Vec::new());
        let mut ada = None;
        for number in 0..NODES {
            let line = Balancer::start(vec![server.clone()]).await;
            let mut builder = Builder::new(Backend::Postgres);
            if let Some(first) = hosts.first() {
                builder = builder.beside(first);
            }
            let url = format!("postgres://postgres@{}/{name}", line.address());
            let stale_ms = i64::try_from(BOUND.as_millis()).expect("a number");
            builder = builder.set("database.url", url).set("areas.max_stale_ms", stale_ms);
            builder = shape(number, builder);
            if number == 0 {
                let (host, owner) = builder.start_with_owner().await;
                hosts.push(host);
                ada = Some(owner);
            } else {
                hosts.push(builder.start().await);
            }
            lines.push(line);
        }
        let balancer = Balancer::start(addresses(&hosts)).await;
        let base = format!("http://{}", balancer.address());
        let ada = Client { base, ..ada.expect("an owner") };
        (Self { hosts, lines, balancer, database, _fresh: None }, ada)
    }

    /// Returns a client of the same user for one node.
    fn at(&self, node: usize, client: &Client) -> Client {
        client.at(&self.hosts[node])
    }

    /// Restarts a killed node.
    async fn revive(&mut self, node: usize) {
        self.hosts[node].start().await;
        self.balancer.lead_to(addresses(&self.hosts));
    }

    /// Waits until every node runs this version. Returns the time it took.
    async fn until_all_run(&self, version: &[u8]) -> Duration {
        let begun = Instant::now();
        for host in &self.hosts {
            host.until_live("support", &digest(version)).await;
        }
        begun.elapsed()
    }

    /// Runs a statement as an administrator of the database.
    async fn administrate(&self, statement: &'static str) {
        let mut connection = PgConnection::connect(&self.database).await.expect("a connection");
        connection.execute(statement).await.expect("done");
    }
}

fn addresses(hosts: &[TestHost]) -> Vec<String> {
    hosts.iter().map(|host| host.api.trim_start_matches("http://").to_owned()).collect()
}

/// Returns `HOST:PORT` and the database's name.
fn split(url: &str) -> (String, String) {
    let (server, name) = url.rsplit_once('/').expect("a URL with a database");
    let (_, server) = server.rsplit_once('@').expect("a URL with a user");
    (server.to_owned(), name.to_owned())
}

/// Asserts a refusal with `Retry-After`.
fn is_away(answer: &Answer) {
    answer.problem(503, "unavailable");
    assert!(answer.header("retry-after").is_some(), "{:?}", answer.headers);
}

/// Opens a case whose subject is its key, with retries. Returns the case's id.
async fn open_by_retrying(client: &Client, key: &str) -> String {
    let body = json!({ "subject": key, "description": "d" });
    let begun = Instant::now();
    loop {
        let request = client.request(Method::POST, CASES).header("idempotency-key", key);
        match try_send(request.json(&body)).await {
            Ok(answer) if answer.status == StatusCode::CREATED => {
                return answer.expect(201)["id"].as_str().expect("an id").to_owned();
            }
            Ok(answer) if answer.status == StatusCode::SERVICE_UNAVAILABLE => is_away(&answer),
            Ok(answer) => drop(answer.problem(409, "idempotency_in_progress")),
            // No node was reachable, or the connection ended early.
            Err(_) => {}
        }
        assert!(begun.elapsed() < PATIENCE, "{key} is never answered");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Writes with separate keys until stopped. Returns the id for each key.
async fn write(client: Client, writer: u64, stop: Arc<AtomicBool>) -> BTreeMap<String, String> {
    let mut ids = BTreeMap::new();
    for count in 0_u64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let key = format!("writer-{writer}-{count:06}");
        let id = open_by_retrying(&client, &key).await;
        ids.insert(key, id);
    }
    ids
}

/// Writers that use the balancer, on separate connections.
struct Load {
    stop: Arc<AtomicBool>,
    writers: Vec<tokio::task::JoinHandle<BTreeMap<String, String>>>,
}

impl Load {
    fn start(client: &Client) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let writers = (0..WRITERS)
            .map(|writer| {
                let http = Client::nobody(&client.base).http;
                let client = Client { http, ..client.clone() };
                tokio::spawn(write(client, writer, Arc::clone(&stop)))
            })
            .collect();
        Self { stop, writers }
    }

    /// Ends the load and compares acknowledged writes with stored ones.
    async fn finish(self, client: &Client) {
        self.stop.store(true, Ordering::Relaxed);
        let mut acknowledged = BTreeMap::new();
        for writer in self.writers {
            acknowledged.extend(writer.await.expect("no panic"));
        }
        let read = async |path: &str| client.until_status(path, 200).await.json();
        check_stored(&everything(read).await, &acknowledged);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_hold_at_every_node_and_so_do_their_ends() {
    let Some((mut fleet, ada)) = Fleet::start(&["support"]).await else { return };
    let workspace = ada.workspace.clone();
    let bob = fleet.hosts[0].member("bob", &workspace, "member");
    for node in 0..NODES {
        fleet.at(node, &bob).get(CASES).await.expect(200);
    }
    // A node caches a session for at most one second.
    let out = fleet.at(1, &bob);
    let request = out.request(Method::POST, "/v1/auth/logout");
    let answer = try_send(request).await.expect("an answer");
    assert!(answer.status < 300, "{}", answer.text());
    let begun = Instant::now();
    for node in 0..NODES {
        fleet.at(node, &bob).until_status(CASES, 401).await;
    }
    assert!(begun.elapsed() < MARGIN, "the session ended after {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_node_may_die_under_load_and_every_retried_write_has_one_effect() {
    let Some((mut fleet, ada)) = Fleet::start(&["support"]).await else { return };
    let load = Load::start(&ada);
    for round in 0..2 * NODES {
        tokio::time::sleep(Duration::from_millis(700)).await;
        fleet.hosts[round % NODES].kill9();
        tokio::time::sleep(Duration::from_millis(300)).await;
        fleet.revive(round % NODES).await;
    }
    load.finish(&ada).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_whose_connections_are_ended_under_load_go_on_by_themselves() {
    let Some((fleet, ada)) = Fleet::start(&["support"]).await else { return };
    let load = Load::start(&ada);
    for _ in 0..6 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE application_name = 'assurance' AND datname = current_database()";
        fleet.administrate(all).await;
    }
    load.finish(&ada).await;
    // The nodes receive each other's changes as before.
    let new = version(1);
    fleet.hosts[1].put_area("support", &new).await.expect(200);
    let took = fleet.until_all_run(&new).await;
    assert!(took < MARGIN, "the others took {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_cut_off_from_the_database_says_so_and_never_answers_with_a_withdrawn_version() {
    let Some((fleet, ada)) = Fleet::start(&["support"]).await else { return };
    let (old, new) = (version(1), version(2));
    for version in [&old, &new] {
        fleet.hosts[0].put_area("support", version).await.expect(200);
        fleet.until_all_run(version).await;
    }
    let cut = fleet.at(2, &ada);
    cut.get(CASES).await.expect(200);
    fleet.lines[2].cut();
    is_away(&cut.until_status(CASES, 503).await);
    let ready = fleet.hosts[2].operate(Method::GET, "/health/ready").await;
    let report = ready.expect(503);
    assert_eq!(report["status"], "unready", "{report}");
    assert_ne!(report["checks"]["database"], "ok", "{report}");
    assert!(ready.header("retry-after").is_some(), "{:?}", ready.headers);
    // The node is alive, so it must not be restarted.
    fleet.hosts[2].operate(Method::GET, "/health/live").await.expect(200);

    let back = json!({"reason": "it is wrong"});
    fleet.hosts[0].operate_with("/areas/support/rollback", &back).await.expect(200);
    fleet.hosts[1].until_live("support", &digest(&old)).await;
    fleet.at(1, &ada).get(CASES).await.expect(200);
    tokio::time::sleep(BOUND).await;
    is_away(&cut.get(CASES).await);

    fleet.lines[2].mend();
    cut.until_status(CASES, 200).await;
    assert_eq!(fleet.hosts[2].live_digest("support").await, Some(digest(&old)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_cannot_learn_what_is_live_stops_answering_within_the_bound() {
    let Some((fleet, ada)) = Fleet::start(&["support"]).await else { return };
    let mut administrator = PgConnection::connect(&fleet.database).await.expect("a connection");
    let mut lock = administrator.begin().await.expect("a transaction");
    let statement = "LOCK TABLE live_areas IN ACCESS EXCLUSIVE MODE";
    lock.execute(statement).await.expect("the lock");
    let begun = Instant::now();
    for node in 0..NODES {
        let refused = fleet.at(node, &ada).until_status(CASES, 503).await;
        is_away(&refused);
        assert!(refused.text().contains("cannot read the live versions"), "{}", refused.text());
    }
    assert!(begun.elapsed() < BOUND + MARGIN, "it took {:?}", begun.elapsed());
    lock.rollback().await.expect("the lock is given up");
    for node in 0..NODES {
        fleet.at(node, &ada).until_status(CASES, 200).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_stops_and_starts_again_is_waited_for() {
    let Some(mut postgres) = Postgres::start().await else { return };
    let shape = |_, builder: Builder| builder.areas(&["support"]);
    let (fleet, ada) = Fleet::start_on(postgres.url(), shape).await;
    let load = Load::start(&ada);
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        postgres.stop();
        for node in 0..NODES {
            is_away(&fleet.at(node, &ada).until_status(CASES, 503).await);
        }
        // Longer than nodes serve without reading the live versions.
        tokio::time::sleep(BOUND + Duration::from_secs(1)).await;
        for node in 0..NODES {
            is_away(&fleet.at(node, &ada).get(CASES).await);
        }
        postgres.launch().await;
        for node in 0..NODES {
            fleet.at(node, &ada).until_status(CASES, 200).await;
        }
    }
    load.finish(&ada).await;
    let new = version(1);
    fleet.hosts[1].put_area("support", &new).await.expect(200);
    fleet.until_all_run(&new).await;
}
