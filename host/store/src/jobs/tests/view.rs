//! Tests of what members and operators see of the queue.

use super::*;

on_both! {
    async fn statistics_are_refreshed_when_the_backlog_grew_or_went(store: &Store) {
        let postgres = store.backend() == crate::Backend::Postgres;
        let refreshed = async |waiting| refresh_statistics(store, waiting).await.unwrap();
        assert!(!refreshed(0).await && !refreshed(900).await);
        Queue(store).insert(&(0..2_000).map(job).collect::<Vec<_>>()).await;
        assert_eq!(refreshed(2_000).await, postgres);
        assert!(!refreshed(2_000).await && !refreshed(1_500).await);
        crate::testing::execute(&mut store.writer().await.unwrap(), "DELETE FROM jobs").await;
        assert_eq!(refreshed(0).await, postgres);
        assert!(!refreshed(0).await);
    }

    async fn the_view_counts_positions_among_the_workspaces_queued_jobs(store: &Store) {
        let queue = Queue(store);
        let foreign = NewJob { workspace: WorkspaceId(Uuid::from_u128(8)), ..job(9) };
        queue.insert(&[foreign, job(1), job(2), job(3)]).await;
        queue.claim(Uuid::new_v4(), 2, 5).await;
        let positions: HashSet<(JobStatus, Option<u64>)> =
            queue.list().await.iter().map(|job| (job.status, job.position)).collect();
        assert!(positions.contains(&(JobStatus::Queued, Some(1))));
        assert!(positions.contains(&(JobStatus::Running, None)));
        let mut c = store.reader().await.unwrap();
        let all = depths(&mut c).await.unwrap()[&LANE];
        assert_eq!((all.waiting, all.running, all.next_due), (2, 2, Some(Timestamp(0))));
        let mine = queue.load().await;
        assert_eq!(mine.queued + mine.active, 3);
    }

    async fn the_overview_goes_by_lane_and_position_then_by_what_happened_last(store: &Store) {
        let queue = Queue(store);
        let jobs: Vec<NewJob> = (1..=6).map(job).collect();
        queue.insert(&jobs).await;
        let taken = queue.claim(Uuid::new_v4(), 6, 5).await;
        let retry = |at| JobRunEndKind::Retry { at: Timestamp(at), error: "e".into() };
        queue.end(&taken[0], JobRunEndKind::Done { keep: true }, 10).await.unwrap();
        queue.end(&taken[1], JobRunEndKind::Failed { error: "no".into() }, 11).await.unwrap();
        queue.end(&taken[2], retry(90), 12).await.unwrap();
        queue.end(&taken[3], retry(80), 13).await.unwrap();
        queue.insert(&[
            NewJob { available_at: Timestamp(70), ..job(7) },
            job(8),
            NewJob { lane: Lane::Assistant, ..job(9) },
        ]).await;
        let seen: Vec<(u128, Option<u64>)> =
            queue.list().await.iter().map(|job| (job.id.0.as_u128(), job.position)).collect();
        // The lanes assistant and delivery, each with its queued, running,
        // retrying and ended jobs.
        let expected = [
            (9, Some(1)),
            (8, Some(1)), (7, Some(2)),
            (5, None), (6, None),
            (4, None), (3, None),
            (2, None), (1, None),
        ];
        assert_eq!(seen, expected);
        let mut c = store.reader().await.unwrap();
        let few = overview(&mut c, WORKSPACE, NOW, 1).await.unwrap();
        let few: Vec<u128> = few.iter().map(|job| job.id.0.as_u128()).collect();
        assert_eq!(few, [9, 8, 5, 4, 2]);
        drop(c);
        assert_eq!(queue.load().await, WorkspaceLaneLoad { active: 2, queued: 2 });
    }

    async fn a_timer_counts_and_is_listed_from_the_moment_it_is_due(store: &Store) {
        let queue = Queue(store);
        let timer = NewJob { available_at: Timestamp(NOW.0 + 1), ..job(1) };
        queue.insert(&[timer, NewJob { available_at: NOW, ..job(2) }]).await;
        let due: Vec<(u128, Option<u64>)> =
            queue.list().await.iter().map(|job| (job.id.0.as_u128(), job.position)).collect();
        assert_eq!((due, queue.load().await.queued), (vec![(2, Some(1))], 1));
        // The pages have every job, and a timer has no position in them.
        assert_eq!(queue.page(&JobFilter::default(), None).await.unwrap().0, [2, 1]);
        let mut c = store.reader().await.unwrap();
        for (now, position) in [(NOW, None), (Timestamp(NOW.0 + 1), Some(2))] {
            let found = find(&mut c, WORKSPACE, now, job(1).id).await.unwrap().unwrap();
            assert_eq!(found.position, position, "at {now:?}");
        }
    }

    async fn pages_are_newest_first_and_hold_to_their_filter(store: &Store) {
        let queue = Queue(store);
        let foreign = NewJob { workspace: WorkspaceId(Uuid::from_u128(8)), ..job(9) };
        let other = NewJob { kind: "other".into(), resource: None, ..job(4) };
        queue.insert(&[job(1), job(2), job(3), other, job(5), foreign]).await;
        let all = JobFilter::default();
        let (first, next) = queue.page(&all, None).await.unwrap();
        let (second, last) = queue.page(&all, next.as_deref()).await.unwrap();
        let (third, end) = queue.page(&all, last.as_deref()).await.unwrap();
        assert_eq!((first, second, third, end), (vec![5, 4], vec![3, 2], vec![1], None));

        let tidying = JobFilter {
            lane: Some(LANE),
            kind: Some("tidy".into()),
            status: Some(JobStatus::Queued),
            resource: Some(Uuid::from_u128(99)),
        };
        let (first, more) = queue.page(&tidying, None).await.unwrap();
        assert_eq!(first, [5, 3]);
        assert_eq!(queue.page(&tidying, more.as_deref()).await.unwrap().0, [2, 1]);
        let elsewhere = queue.page(&all, more.as_deref()).await;
        assert!(matches!(elsewhere, Err(Error::InvalidCursor)), "{elsewhere:?}");
        let none = JobFilter { status: Some(JobStatus::Dead), ..tidying };
        assert_eq!(queue.page(&none, None).await.unwrap(), (vec![], None));

        let mut c = store.reader().await.unwrap();
        let found = find(&mut c, WORKSPACE, NOW, JobId(Uuid::from_u128(3))).await.unwrap().unwrap();
        assert_eq!((found.position, found.max_attempts), (Some(3), 3));
        assert_eq!(find(&mut c, WORKSPACE, NOW, JobId(Uuid::from_u128(9))).await.unwrap(), None);
    }
}

#[tokio::test]
async fn the_first_jobs_of_a_workspace_are_read_without_those_of_others() {
    let Some(fresh) = crate::testing::fresh(crate::Backend::Postgres).await else { return };
    let mut connection = fresh.store.writer().await.unwrap();
    let crate::connection::DriverConnection::Postgres(c) = connection.raw() else {
        panic!("not PostgreSQL")
    };
    let fill = "INSERT INTO jobs (workspace_id, id, area, kind, lane, payload, status, attempts, \
                max_attempts, timeout_ms, available_at, created_at, updated_at) \
                SELECT CASE WHEN n <= 40000 THEN gen_random_uuid() ELSE $1 END, \
                gen_random_uuid(), 'a', 'k', $2, '{}', 'queued', 0, 1, 1, n, 1, 1 \
                FROM generate_series(1, 42000) AS n";
    let of = (WORKSPACE.0, LANE.as_str());
    sqlx::query(fill).bind(of.0).bind(of.1).execute(&mut *c).await.unwrap();
    sqlx::raw_sql("ANALYZE jobs").execute(&mut *c).await.unwrap();
    let first = crate::jobs::view::first_queued(crate::Backend::Postgres, LANE);
    let explain = sqlx::AssertSqlSafe(format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {first}"));
    let explain = sqlx::query_scalar(explain).bind(of.0).bind(50_000_i64).bind(100_i64);
    let plan: Vec<String> = explain.fetch_all(c).await.unwrap();
    assert!(!plan.iter().any(|line| line.contains("Rows Removed")), "{plan:#?}");
}
