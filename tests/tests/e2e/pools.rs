//! Resources that all calls share: database connections and the pool of
//! instances. An area that uses its maximum leaves enough for the others.

use std::time::{Duration, Instant};

use assurance_tests::components::{PoolUsage, fixture, with_instances};
use assurance_tests::{Answer, Backend, Builder, Client, TestHost, both_backends};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const CASES: &str = "/v1/workspaces/{ws}/support/cases";
const HOLD: &str = "/v1/workspaces/{ws}/fixtures/holds-turn";
/// Numbers of core instances, memories and tables of the fixture without
/// additional modules.
const OWN: [u8; 3] = [3, 1, 2];

/// Starts this number of concurrent calls. Each call writes and then queries,
/// and keeps its database connection meanwhile.
fn hold(client: &Client, calls: u32) -> JoinSet<Answer> {
    let mut held = JoinSet::new();
    for number in 0..calls {
        let (client, body) = (client.clone(), json!({"do": format!("query {number}")}));
        held.spawn(async move { client.post(HOLD, &body).await });
    }
    held
}

/// Returns whether a request was served. A response with status 503 must have
/// `Retry-After`.
fn served(answer: &Answer) -> bool {
    if answer.status == 503 {
        assert!(answer.header("retry-after").is_some(), "{}", answer.text());
        return false;
    }
    assert!(answer.status < 300, "{}: {}", answer.status, answer.text());
    true
}

/// Numbers of requests of a user, and of those that were served.
#[derive(Default, Debug)]
struct Service {
    reads: [u32; 2],
    writes: [u32; 2],
    /// Number of calls that held a connection and got a response.
    held: u32,
    slowest: Duration,
}

/// Sends reads and writes until the calls that hold connections have ended.
async fn work(client: &Client, held: &mut JoinSet<Answer>) -> Service {
    let mut service = Service::default();
    while !held.is_empty() {
        while let Some(ended) = held.try_join_next() {
            service.held += u32::from(ended.expect("no panic").status == 200);
        }
        let begun = Instant::now();
        let read = served(&client.get(CASES).await);
        let key = format!("while-held-{}", service.writes[1]);
        let wrote = served(&client.open_case(&key).await);
        service.slowest = service.slowest.max(begun.elapsed());
        for (count, one) in [(&mut service.reads, read), (&mut service.writes, wrote)] {
            *count = [count[0] + u32::from(one), count[1] + 1];
        }
    }
    service
}

async fn neighbors(builder: Builder) -> (TestHost, Client, Client) {
    let (mut host, ada) = builder.areas(&["support"]).start_with_owner().await;
    let eve = host.create_owner("eve", "elsewhere");
    (host, ada, eve)
}

both_backends! {
    async fn calls_that_each_hold_a_connection_leave_some_to_others(backend) {
        let builder = Builder::new(backend).fixtures(&["holds-turn"]);
        let (host, ada, eve) = neighbors(builder).await;
        let mut held = hold(&ada, 256);
        let service = work(&eve, &mut held).await;
        println!("{backend:?}: {service:?}");
        assert_eq!(service.reads[0], service.reads[1], "a read waits for no writer");
        assert!(service.writes[0] > 0 && service.held > 0, "{service:?}");
        if backend == Backend::Postgres {
            assert_eq!(service.writes[0], service.writes[1], "{service:?}");
        }
        // The workspace whose calls held the connections is served again.
        ada.open_case("after-all-of-them").await.expect(201);
        let left_open = host.metric("assurance_database_transactions_left_open_total").await;
        assert_eq!(left_open, Some(0.0));
    }

    async fn an_area_of_many_modules_leaves_room_for_the_instances_of_others(backend) {
        let builder = Builder::new(backend)
            .set("runtime.max_instances", 64)
            .set("runtime.max_concurrent_per_area", 16);
        let (host, ada, eve) = neighbors(builder).await;
        let [instances, memories, tables] = OWN;
        let largest = [(40 - instances, PoolUsage::Nothing), (4 - memories, PoolUsage::Memory), (8 - tables, PoolUsage::Table)];
        for (count, takes) in largest {
            let component = with_instances(&fixture("holds-turn"), count, takes);
            host.put_area("holds_turn", &component).await.expect(200);
            let mut held = hold(&ada, 64);
            let service = work(&eve, &mut held).await;
            println!("{backend:?} {takes:?}: {service:?}");
            // On SQLite, a workspace that blocked other writers for too long is
            // paused.
            if backend == Backend::Postgres {
                assert!(service.held > 0, "{takes:?}: {service:?}");
            }
            assert_eq!(service.reads[0], service.reads[1], "{takes:?}: {service:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_needs_more_of_the_pool_than_there_is_for_one_is_refused() {
    let (mut host, ada, _) = neighbors(Builder::new(Backend::Sqlite)).await;
    let [instances, memories, tables] = OWN;
    let too_many = [
        (41 - instances, PoolUsage::Nothing, "at most 40 instances of core modules"),
        (5 - memories, PoolUsage::Memory, "5 Wasm linear memories"),
        (9 - tables, PoolUsage::Table, "9 tables"),
    ];
    for (count, takes, reason) in too_many {
        let component = with_instances(&fixture("holds-turn"), count, takes);
        let refused: Value = host.put_area("holds_turn", &component).await.expect(422);
        assert!(refused["detail"].to_string().contains(reason), "{refused}");
    }
    assert!(host.is_alive());
    ada.get(CASES).await.expect(200);
    host.put_area("holds_turn", &fixture("holds-turn")).await.expect(200);
}
