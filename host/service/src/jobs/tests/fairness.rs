//! Tests that no workspace and no resource blocks a lane for the others.

use std::collections::BTreeSet;

use super::*;

/// Waits until `jobs` jobs have run.
async fn noted(log: &Mutex<BTreeSet<u128>>, jobs: usize) -> BTreeSet<u128> {
    let begun = std::time::Instant::now();
    loop {
        let seen = log.lock().clone();
        if seen.len() >= jobs {
            return seen;
        }
        assert!(begun.elapsed() < PATIENCE, "{} of {jobs} jobs", seen.len());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn of(workspace: u128, resource: Option<u128>, n: u128) -> NewJob {
    NewJob {
        workspace: WorkspaceId(Uuid::from_u128(workspace)),
        resource: resource.map(Uuid::from_u128),
        ..job(n)
    }
}

on_both! {
    async fn jobs_beyond_a_scan_do_not_wait_for_the_next_poll(store: &Store) {
        let log = Arc::new(Mutex::new(BTreeSet::new()));
        let seen = Arc::clone(&log);
        let code = area(move |_, run| {
            seen.lock().insert(run.id.0.as_u128());
            Box::pin(async { done() })
        });
        let jobs: Vec<NewJob> = (0..300).map(|n| of(7, None, n)).collect();
        insert(store, &jobs).await;
        let slow_poll = |jobs: &mut config::JobsConfig| jobs.poll_ms = 60_000;
        let mut bench = Bench::with(store, Some(code), slow_poll).await;
        noted(&log, 300).await;
        bench.drain(1_000).await;
    }

    async fn a_workspace_with_many_jobs_delays_another_by_one_job_at_most(store: &Store) {
        let log = Arc::new(Mutex::new(BTreeSet::new()));
        let seen = Arc::clone(&log);
        let code = area(move |_, run| {
            let (seen, n) = (Arc::clone(&seen), run.id.0.as_u128());
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                seen.lock().insert(n);
                done()
            })
        });
        // The quiet workspaces sort after and before the noisy one.
        let mut jobs: Vec<NewJob> = (0..1_500).map(|n| of(7, None, n)).collect();
        let quiet = [6, 8].map(|workspace| of(workspace, None, 10_000 + workspace));
        jobs.extend(quiet.clone().map(|job| NewJob { available_at: Timestamp(1), ..job }));
        insert(store, &jobs).await;
        let four = |jobs: &mut config::JobsConfig| jobs.lanes.delivery.capacity = 4;
        let mut bench = Bench::with(store, Some(code), four).await;
        let first = noted(&log, 12).await;
        for job in quiet {
            assert!(first.contains(&job.id.0.as_u128()), "{first:?}");
        }
        bench.drain(1_000).await;
    }

    async fn jobs_that_hang_take_their_resource_s_part_of_the_lane_and_no_more(store: &Store) {
        let log = Arc::new(Mutex::new(BTreeSet::new()));
        let hanging = Arc::new(AtomicU32::new(0));
        let (seen, hang) = (Arc::clone(&log), Arc::clone(&hanging));
        let code = area(move |_, run| {
            let (seen, hang, n) = (Arc::clone(&seen), Arc::clone(&hang), run.id.0.as_u128());
            Box::pin(async move {
                if n < 1_000 {
                    hang.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_secs(60)).await;
                }
                seen.lock().insert(n);
                done()
            })
        });
        // More jobs of one workspace than one scan of the oldest jobs reads.
        let mut jobs: Vec<NewJob> = (0..200).map(|n| of(7, Some(5), n)).collect();
        let healthy = (0..20).map(|n| of(7, Some(4 + 2 * (n % 2)), 1_000 + n));
        jobs.extend(healthy.map(|job| NewJob { available_at: Timestamp(1), ..job }));
        insert(store, &jobs).await;
        let mut bench = Bench::start(store, code).await;
        let done = noted(&log, 20).await;
        assert!(done.iter().copied().eq(1_000..1_020), "{done:?}");
        assert_eq!(hanging.load(Ordering::SeqCst), 4, "a quarter of 16");
        bench.drain(10).await;
    }
}
