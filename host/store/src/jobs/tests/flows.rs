//! Tests of claiming jobs from a lane's flows and of walking through them.

use super::*;

impl Queue<'_> {
    async fn walk(&self, walk: &mut FlowWalkProgress) -> Vec<PendingJob> {
        let mut c = self.0.reader().await.unwrap();
        super::walk(&mut c, LANE, &["notes".to_owned()], walk, Timestamp(5)).await.unwrap()
    }
}

/// Returns a job of a resource of its own.
fn alone(workspace: u128, n: u128, due: i64) -> NewJob {
    NewJob {
        workspace: WorkspaceId(Uuid::from_u128(workspace)),
        resource: Some(Uuid::from_u128(n)),
        available_at: Timestamp(due),
        ..job(n)
    }
}

on_both! {
    async fn eight_claimers_never_take_a_job_twice_and_leave_none(store: &Store) {
        const JOBS: usize = 1_200;
        let jobs: Vec<NewJob> = (0..JOBS as u128).map(job).collect();
        Queue(store).insert(&jobs).await;
        let claimers = (0..8).map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut taken = Vec::new();
                loop {
                    let more = Queue(&store).claim(Uuid::new_v4(), 7, 5).await;
                    if more.is_empty() {
                        return taken;
                    }
                    taken.extend(more.into_iter().map(|leased| leased.job.id));
                }
            })
        });
        let taken = futures::future::join_all(claimers).await;
        let taken: Vec<JobId> = taken.into_iter().flat_map(Result::unwrap).collect();
        assert_eq!(taken.len(), JOBS);
        assert_eq!(taken.iter().collect::<HashSet<_>>().len(), JOBS);
    }

    async fn every_flow_is_walked_through_once_whatever_waits_in_it(store: &Store) {
        let queue = Queue(store);
        let of = |workspace: u128, resource: Option<u128>, n: u128| NewJob {
            workspace: WorkspaceId(Uuid::from_u128(workspace)),
            resource: resource.map(Uuid::from_u128),
            ..job(n)
        };
        let mut jobs: Vec<NewJob> = (0..300).map(|n| of(7, Some(99), n)).collect();
        jobs.extend((0..40).map(|n| of(7, Some(100 + n), 400 + n)));
        jobs.extend((0..9).map(|n| of(8, None, 500 + n)));
        jobs.push(NewJob { available_at: Timestamp(6), ..of(9, None, 600) });
        jobs.push(NewJob { area: "gone".into(), ..of(10, None, 601) });
        jobs.push(of(11, Some(5), 602));
        queue.insert(&jobs).await;

        let mut walk = FlowWalkProgress::default();
        let first = queue.walk(&mut walk).await;
        assert!(!walk.is_at_start());
        let second = queue.walk(&mut walk).await;
        assert!(walk.is_at_start());
        let mut found = BTreeMap::<JobFairnessKey, u32>::new();
        for due in first.iter().chain(&second) {
            *found.entry(due.flow).or_default() += 1;
        }
        let mut expected: BTreeMap<JobFairnessKey, u32> = jobs.iter().map(|job| (job.flow(), 1)).collect();
        expected.insert(jobs[0].flow(), 4);
        expected.insert(of(8, None, 0).flow(), 4);
        // One flow is not due, and one belongs to an area that this process
        // does not run.
        expected.remove(&of(9, None, 0).flow());
        expected.remove(&of(10, None, 0).flow());
        assert_eq!(found, expected);
    }

    async fn a_workspace_with_many_due_flows_does_not_delay_the_next_one(store: &Store) {
        let queue = Queue(store);
        // The jobs of the first workspace are not due, except for the last one.
        let mut jobs: Vec<NewJob> = (1..200).map(|n| alone(6, n, 6)).collect();
        jobs.push(alone(6, 200, 5));
        jobs.extend((201..=500).map(|n| alone(7, n, 5)));
        jobs.push(alone(8, 501, 5));
        queue.insert(&jobs).await;
        let (mut found, mut walk) = (BTreeMap::<u128, u32>::new(), FlowWalkProgress::default());
        loop {
            for due in queue.walk(&mut walk).await {
                *found.entry(due.flow.workspace.0.as_u128()).or_default() += 1;
            }
            if walk.is_at_start() {
                break;
            }
        }
        // The page with the hundredth due flow is the last one of its workspace.
        assert_eq!(found, [(6, 1), (7, 120), (8, 1)].into());
    }

    async fn a_workspace_with_many_flows_that_are_not_due_is_read_in_several_walks(store: &Store) {
        let queue = Queue(store);
        let mut jobs: Vec<NewJob> = (1..=2_100).map(|n| alone(7, n, 6)).collect();
        jobs.push(alone(7, 2_101, 5));
        jobs.push(alone(8, 2_102, 5));
        queue.insert(&jobs).await;
        let (mut found, mut walk) = (Vec::new(), FlowWalkProgress::default());
        for page in 1.. {
            let due = queue.walk(&mut walk).await;
            found.extend(due.iter().map(|due| (due.flow.workspace.0.as_u128(), page)));
            if walk.is_at_start() {
                break;
            }
        }
        found.sort_unstable();
        // The first walk leaves the workspace after 63 pages of 32 flows, and
        // the second one continues there after its first page.
        assert_eq!(found, [(7, 68), (8, 64), (8, 68)]);
    }
}

/// Claims at most `limit` jobs of the flow of all jobs of [`job`]. Returns their number.
async fn claim_due(connection: &mut Connection, limit: u32) -> usize {
    let request = ClaimRequest {
        lane: LANE,
        flows: &[(job(0).flow(), limit)],
        areas: &["notes".to_owned()],
        worker: Uuid::new_v4(),
        lease: Uuid::new_v4(),
    };
    claim(connection, request, Timestamp(5)).await.unwrap().len()
}

#[tokio::test]
async fn jobs_are_claimed_after_a_newer_release_has_added_a_column() {
    let Some(fresh) = testing::fresh(Backend::Postgres).await else { return };
    Queue(&fresh.store).insert(&[job(1), job(2)]).await;
    let mut connection = fresh.store.writer().await.unwrap();
    assert_eq!(claim_due(&mut connection, 1).await, 1);
    // The second statement makes the server plan the prepared claim again.
    for change in ["ALTER TABLE jobs ADD COLUMN extra text", "ALTER FUNCTION claim_jobs COST 200"] {
        testing::execute(&mut connection, change).await;
    }
    assert_eq!(claim_due(&mut connection, 1).await, 1);
}

/// The other way, which PostgreSQL plans with some statistics, reads and sorts all jobs of the
/// workspace.
#[tokio::test]
async fn a_claim_reads_the_jobs_that_it_claims_whatever_the_backlog_is() {
    let Some(fresh) = crate::testing::fresh(crate::Backend::Postgres).await else { return };
    let store = &fresh.store;
    // Jobs of two lanes alternate, as they do when each write sets both in motion.
    let lane = |n| if n % 2 == 0 { LANE } else { Lane::Maintenance };
    for first in (0..20_000).step_by(500) {
        let jobs = (first..first + 500).map(|n| NewJob { lane: lane(n), ..job(n) });
        Queue(store).insert(&jobs.collect::<Vec<_>>()).await;
    }
    let mut tx = store.begin(crate::TransactionAccess::Write).await.unwrap();
    crate::testing::execute(&mut tx, "ANALYZE jobs").await;
    assert_eq!(claim_due(&mut tx, 4).await, 4);
    // Rows that a sequential scan returns count for the table itself.
    let sql = "SELECT pg_stat_get_xact_tuples_returned('jobs_flows'::regclass), \
               pg_stat_get_xact_tuples_returned('jobs_pkey'::regclass), \
               pg_stat_get_xact_tuples_returned('jobs'::regclass)";
    let read: Vec<(i64, i64, i64)> = crate::testing::rows(&mut tx, sql).await;
    let (flows, by_id, scanned) = read[0];
    assert!((4..100).contains(&flows) && by_id < 100, "{flows} and {by_id} index entries");
    assert_eq!(scanned, 0, "rows by a sequential scan");
}
