//! Tests of which runs count as an attempt, and of what follows one that does not.

use assurance_core::budgets::{BudgetExceeded, BudgetOwnerKind, Resource};
use assurance_store::apply::{DocumentInsert, Effects};

use super::together::{area_with_batches, one_slot};
use super::*;

on_both! {
    async fn jobs_beyond_a_budget_wait_until_a_retry_can_succeed(store: &Store) {
        let code = area_with_batches(64, |_, _| {
            let (whose, name) = (BudgetOwnerKind::Workspace, "acme".to_owned());
            let over = BudgetExceeded { whose, name, resource: Resource::Cpu, retry_after_s: 60 };
            Box::pin(async { Err(CallError::OverBudget(over)) })
        });
        let begun = Clock::System.now();
        // The first one runs by itself, the others together.
        let alone = NewJob { kind: "sweep".into(), ..job(1) };
        insert(store, &[alone, job(2), job(3)]).await;
        let mut bench = Bench::with(store, Some(code), one_slot).await;
        let is_deferred = |job: &JobForMembers| job.available_at > begun;
        let patience = std::time::Instant::now();
        while !list(store).await.iter().all(is_deferred) {
            assert!(patience.elapsed() < PATIENCE, "{:#?}", list(store).await);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bench.drain(1_000).await;
        for job in list(store).await {
            assert_eq!((job.status, job.attempts), (JobStatus::Queued, 0));
            let wait_ms = job.available_at.ms_since(begun);
            assert!((60_000..80_000).contains(&wait_ms), "{wait_ms} ms");
        }
    }

    async fn a_run_after_a_write_conflict_is_by_the_version_that_is_live_then(store: &Store) {
        let runs = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&runs);
        let code = area(move |_, _| {
            count.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Err(CallError::Store(store::Error::RunAgain)) })
        });
        let mut bench = Bench::start(store, code).await;
        bench.enqueue(&[job(1)]).await;
        while runs.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        *bench.live.lock() = Some(area(|_, _| Box::pin(async { done() })));
        let before = runs.load(Ordering::SeqCst);
        let seen = bench.becomes(&[JobStatus::Succeeded]).await;
        bench.drain(1_000).await;
        assert_eq!(seen[0].attempts, 1);
        // One may have begun while the version was replaced.
        let after = runs.load(Ordering::SeqCst);
        assert!(after <= before + 1, "{before} runs, then {after}");
    }
}

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
