//! Tests of jobs that run together.

use std::collections::BTreeSet;

use tokio::sync::Notify;

use super::*;
use assurance_core::domain::job::{JobRunEnd, JobRunEndKind};
use assurance_core::domain::queue::{MemberJobAction, PendingMemberJobAction};
use assurance_work::UnitOfWork;

type Answers = Result<Result<Vec<JobOutcome>, JobFailure>, CallError>;

/// An area of which one call runs up to `most` jobs. The closure is called with the jobs of each
/// call, also with one job that runs by itself.
struct Together<F> {
    most: u32,
    run: F,
}

impl<F> AreaCode for Together<F>
where
    F: for<'a> Fn(&'a mut UnitOfWork, &'a [JobRun]) -> BoxFuture<'a, Answers>
        + Send
        + Sync
        + 'static,
{
    fn run<'a>(
        &'a self,
        mut unit: UnitOfWork,
        job: &'a JobRun,
        _: Duration,
    ) -> BoxFuture<'a, CallOutcome<Result<JobOutcome, JobFailure>>> {
        Box::pin(async move {
            let result = (self.run)(&mut unit, std::slice::from_ref(job)).await;
            let result = result.map(|ended| ended.map(|mut outcomes| outcomes.remove(0)));
            CallOutcome { unit: Some(unit), result }
        })
    }

    fn max_batch(&self, kind: &str) -> u32 {
        if matches!(kind, "tidy" | "index") { self.most } else { 1 }
    }

    fn run_batch<'a>(
        &'a self,
        mut unit: UnitOfWork,
        jobs: &'a [JobRun],
        _: Duration,
    ) -> BoxFuture<'a, CallOutcome<Result<Vec<JobOutcome>, JobFailure>>> {
        Box::pin(async move {
            let result = (self.run)(&mut unit, jobs).await;
            CallOutcome { unit: Some(unit), result }
        })
    }
}

/// Lets the compiler infer the closure type that [`Together`] requires.
pub(super) fn area_with_batches<F>(most: u32, run: F) -> Arc<dyn AreaCode>
where
    F: for<'a> Fn(&'a mut UnitOfWork, &'a [JobRun]) -> BoxFuture<'a, Answers>
        + Send
        + Sync
        + 'static,
{
    Arc::new(Together { most, run })
}

fn all_done(jobs: &[JobRun]) -> Answers {
    Ok(Ok(vec![JobOutcome::Done; jobs.len()]))
}

/// Lets the lane run one job or batch at a time.
pub(super) fn one_slot(jobs: &mut config::JobsConfig) {
    jobs.lanes.delivery.capacity = 1;
}

/// Enqueues a job that never runs for each of these jobs: the effect of their run.
fn leave_a_trace(unit: &mut UnitOfWork, jobs: &[JobRun]) {
    for job in jobs {
        let trace = EnqueueJobRequest {
            kind: "child".into(),
            payload: job.payload.clone(),
            resource: Some(job.id.0),
            available_at: Some(Timestamp(i64::MAX)),
            ..EnqueueJobRequest::default()
        };
        unit.enqueue(trace).unwrap();
    }
}

/// Waits until no job waits or runs but the traces. Returns the other jobs, and the ids of the jobs
/// with a trace, which have one each.
async fn ended(store: &Store) -> (Vec<JobForMembers>, BTreeSet<Uuid>) {
    let begun = std::time::Instant::now();
    loop {
        let (traces, jobs): (Vec<_>, Vec<_>) =
            list(store).await.into_iter().partition(|job| job.kind == "child");
        if jobs.iter().all(|job| job.status.is_final()) {
            let ids: BTreeSet<Uuid> = traces.iter().filter_map(|job| job.resource).collect();
            assert_eq!(ids.len(), traces.len(), "an effect of a run was stored twice");
            return (jobs, ids);
        }
        assert!(begun.elapsed() < PATIENCE, "{jobs:#?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

on_both! {
    async fn waiting_jobs_of_a_flow_run_together_and_have_their_effects_once(store: &Store) {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&calls);
        let code = area_with_batches(64, move |unit, jobs| {
            log.lock().push(jobs.len());
            leave_a_trace(unit, jobs);
            let ends = all_done(jobs);
            Box::pin(async { ends })
        });
        // Other kinds, other workspaces and jobs that are not due run by themselves or not at all.
        let mut jobs: Vec<NewJob> = (1..=300).map(job).collect();
        jobs.extend((301..=310).map(|n| NewJob { kind: "sweep".into(), ..job(n) }));
        jobs.push(NewJob { available_at: Timestamp(i64::MAX), max_attempts: 9, ..job(311) });
        insert(store, &jobs).await;
        let mut bench = Bench::start(store, code).await;
        let begun = std::time::Instant::now();
        while list(store).await.iter().filter(|job| job.status == JobStatus::Succeeded).count() < 310 {
            assert!(begun.elapsed() < PATIENCE, "{:#?}", list(store).await);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bench.drain(1_000).await;
        let calls = calls.lock().clone();
        // On PostgreSQL, calls run again after write conflicts.
        assert!(calls.iter().sum::<usize>() >= 310, "{calls:?}");
        assert!(calls.iter().all(|jobs| *jobs <= 64), "{calls:?}");
        assert!(calls.len() < 100, "{calls:?}");
        let traces = list(store).await.iter().filter(|job| job.kind == "child").count();
        assert_eq!(traces, 310);
    }

    async fn jobs_that_fail_together_run_by_themselves_and_lose_no_attempt(store: &Store) {
        let failed = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&failed);
        let code = area_with_batches(64, move |unit, jobs| {
            leave_a_trace(unit, jobs);
            assert!(jobs.iter().all(|job| job.attempt == 1), "{jobs:?}");
            let ends = match jobs {
                [_] => all_done(jobs),
                _ => match count.fetch_add(1, Ordering::SeqCst) % 4 {
                    0 => Err(CallError::Trap("as asked".into())),
                    // One of them may fit into the area's memory.
                    1 => Err(CallError::Overloaded),
                    2 => Ok(Err(JobFailure::Fail("as asked".into()))),
                    _ => Ok(Err(JobFailure::Retry("as asked".into()))),
                },
            };
            Box::pin(async { ends })
        });
        let jobs: Vec<NewJob> = (1..=200).map(job).collect();
        insert(store, &jobs).await;
        let mut bench = Bench::start(store, code).await;
        let (jobs, traces) = ended(store).await;
        bench.drain(1_000).await;
        assert!(jobs.iter().all(|job| (job.status, job.attempts) == (JobStatus::Succeeded, 1)));
        assert_eq!((jobs.len(), traces.len()), (200, 200));
        // Those that had begun when the first one failed.
        assert!((1..=12).contains(&failed.load(Ordering::SeqCst)), "{failed:?}");
    }

    async fn a_job_that_is_cancelled_while_it_runs_takes_no_other_with_it(store: &Store) {
        let cancelled = Arc::new(Mutex::new(None));
        let (first, database) = (Arc::clone(&cancelled), store.clone());
        let code = area_with_batches(64, move |unit, jobs| {
            leave_a_trace(unit, jobs);
            let victim = match jobs {
                [_, second, ..] if first.lock().is_none() => *first.lock().insert(second.id),
                _ => {
                    let ends = all_done(jobs);
                    return Box::pin(async { ends });
                }
            };
            let (ends, database) = (all_done(jobs), database.clone());
            Box::pin(async move {
                let how = MemberJobAction::Cancel("not wanted".into());
                let change = PendingMemberJobAction { job: victim, lane: LANE, how };
                let mut c = database.writer().await.unwrap();
                store::jobs::change(&mut c, WORKSPACE, &change, Clock::System.now()).await.unwrap();
                c.release();
                ends
            })
        });
        let jobs: Vec<NewJob> = (1..=100).map(job).collect();
        insert(store, &jobs).await;
        let mut bench = Bench::start(store, code).await;
        let (jobs, traces) = ended(store).await;
        bench.drain(1_000).await;
        let victim = cancelled.lock().expect("jobs ran together");
        for job in &jobs {
            let expected =
                if job.id == victim { JobStatus::Failed } else { JobStatus::Succeeded };
            assert_eq!(job.status, expected, "{job:?}");
        }
        assert_eq!((jobs.len(), traces.len()), (100, 99));
        assert!(!traces.contains(&victim.0));
    }

    async fn each_job_of_a_call_has_its_own_outcome(store: &Store) {
        let alone = Arc::new(Mutex::new(BTreeSet::new()));
        let log = Arc::clone(&alone);
        let code = area_with_batches(64, move |unit, jobs| {
            let outcome = |job: &JobRun| match (job.id.0.as_u128() % 3, &job.checkpoint, jobs.len()) {
                (0, None, 2..) => JobOutcome::Continue("1".into()),
                (1, ..) if job.attempt == 1 => JobOutcome::Retry(Timestamp(0), "again".into()),
                _ => JobOutcome::Done,
            };
            let outcomes: Vec<JobOutcome> = jobs.iter().map(outcome).collect();
            let finished: Vec<JobRun> = std::iter::zip(jobs, &outcomes)
                .filter(|(_, outcome)| **outcome == JobOutcome::Done)
                .map(|(job, _)| job.clone())
                .collect();
            leave_a_trace(unit, &finished);
            if let [job] = jobs && job.checkpoint.is_some() {
                assert_eq!(job.attempt, 1, "to continue is no attempt");
                log.lock().insert(job.id);
            }
            Box::pin(async { Ok(Ok(outcomes)) })
        });
        let jobs: Vec<NewJob> = (1..=90).map(job).collect();
        insert(store, &jobs).await;
        let mut bench = Bench::start(store, code).await;
        let (jobs, traces) = ended(store).await;
        bench.drain(1_000).await;
        assert_eq!((jobs.len(), traces.len()), (90, 90));
        for job in &jobs {
            let attempts = if job.id.0.as_u128() % 3 == 1 { 2 } else { 1 };
            assert_eq!((job.status, job.attempts), (JobStatus::Succeeded, attempts), "{job:?}");
        }
        assert!(!alone.lock().is_empty(), "jobs ran together");
    }

    async fn a_job_that_continues_is_joined_by_no_other(store: &Store) {
        let code = area_with_batches(64, |_, jobs| {
            let ends = all_done(jobs);
            Box::pin(async { ends })
        });
        let areas = areas(&Arc::new(Mutex::new(Some(code))));
        let settings = config::JobsConfig::default();
        let shared = WorkerState::new(deps(store, Clock::System, areas, settings));
        let index = |n, due| NewJob { kind: "index".into(), available_at: Timestamp(due), ..job(n) };
        insert(store, &[index(2, 0)]).await;
        let step = steal(store, Timestamp(1)).await.unwrap();
        let goes_on = JobRunEnd {
            workspace: WORKSPACE,
            jobs: vec![step.job.id],
            lease: step.lease,
            how: JobRunEndKind::Continue { checkpoint: "{}".into(), requeue: true },
            progress: None,
        };
        store.write(async |c| store::jobs::end(c, &goes_on, Timestamp(1)).await).await.unwrap();
        insert(store, &[job(1), index(3, 2)]).await;
        let first = steal(store, Timestamp(1)).await.unwrap();
        let batch = batch::gather(&shared, first, Uuid::new_v4()).await;
        assert_eq!(batch.iter().map(|leased| leased.job.id).collect::<Vec<_>>(), [job(1).id]);
        // The others wait as before.
        let (runs, waits) = (JobStatus::Running, JobStatus::Queued);
        let seen = list(store).await;
        let seen: Vec<_> =
            seen.iter().map(|job| (job.status, job.attempts, job.available_at.0)).collect();
        assert_eq!(seen, [(runs, 1, 0), (waits, 0, 1), (waits, 0, 2)]);
    }

    async fn a_batch_that_its_version_s_replacement_ended_runs_together_again(store: &Store) {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&calls);
        let code = area_with_batches(64, move |_, jobs| {
            let mut calls = log.lock();
            calls.push(jobs.len());
            let ends = if calls.len() == 1 { Err(CallError::Replaced) } else { all_done(jobs) };
            Box::pin(async { ends })
        });
        insert(store, &(1..=64).map(job).collect::<Vec<_>>()).await;
        let mut bench = Bench::with(store, Some(code), one_slot).await;
        let (jobs, _) = ended(store).await;
        bench.drain(1_000).await;
        assert!(jobs.iter().all(|job| (job.status, job.attempts) == (JobStatus::Succeeded, 1)));
        // On PostgreSQL, calls run again after write conflicts.
        let calls = calls.lock();
        assert!(calls.len() > 1 && calls.iter().all(|jobs| *jobs == 64), "{calls:?}");
    }

    async fn a_batch_claims_no_job_that_would_wait_for_it(store: &Store) {
        let (begun, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (begins, ended) = (Arc::clone(&begun), Arc::clone(&end));
        let code = area_with_batches(64, move |_, jobs| {
            let (ends, ended) = (all_done(jobs), Arc::clone(&ended));
            begins.notify_one();
            Box::pin(async move {
                ended.notified().await;
                ends
            })
        });
        let other = |n| NewJob { kind: "sweep".into(), available_at: Timestamp(1), ..job(n) };
        insert(store, &[job(1), other(2), other(3)]).await;
        let mut bench = Bench::with(store, Some(code), one_slot).await;
        let (runs, done, waits) = (JobStatus::Running, JobStatus::Succeeded, JobStatus::Queued);
        begun.notified().await;
        bench.becomes(&[runs, waits, waits]).await;
        // The drain begins none of them.
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            end.notify_one();
        });
        bench.drain(10_000).await;
        let left = bench.becomes(&[done, waits, waits]).await;
        assert_eq!(left.iter().map(|job| job.attempts).collect::<Vec<_>>(), [1, 0, 0]);
    }
}
