//! Tests that a run that would fail again counts as an attempt.

use assurance_store::apply::{DocumentInsert, Effects};

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_panics_uses_up_an_attempt() {
    let fresh = testing::fresh(Backend::Sqlite).await.unwrap();
    let store = fresh.store.clone();
    let code = area(move |_, _| {
        let store = store.clone();
        Box::pin(async move {
            let mut panics = Effects::new(WORKSPACE, "notes", Timestamp(1));
            panics.inserts.push(DocumentInsert {
                // The name of its table would be cut inside a character.
                collection: format!("a{}", "é".repeat(40)),
                id: "a".into(),
                version: 1,
                body: "{}".into(),
            });
            let committed = store.commit_in_group(panics).await;
            committed.map_or_else(|error| Err(CallError::Store(error)), |_| done())
        })
    });
    let mut bench = Bench::start(&fresh.store, code).await;
    bench.enqueue(&[NewJob { max_attempts: 2, ..job(1) }]).await;
    let seen = bench.becomes(&[JobStatus::Dead]).await;
    bench.drain(1_000).await;
    assert_eq!(seen[0].attempts, 2);
}
