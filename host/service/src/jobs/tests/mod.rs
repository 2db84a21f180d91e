//! Tests of the workers with the real queue of each database and areas made of closures.

mod attempts;
mod fairness;
mod together;

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::*;
use assurance_core::domain::area::JobRun;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::job::{
    EVENT_KIND, JobFailure, JobFairnessKey, JobOutcome, JobStatus, LeasedJob, MERGED_EVENTS_KIND,
    NewJob,
};
use assurance_core::domain::manifest::JobSpec;
use assurance_core::domain::queue::JobForMembers;
use assurance_core::domain::time::Timestamp;
use assurance_store::jobs::ClaimRequest;
use assurance_store::testing::{self, job, on_both};
use assurance_store::{Backend, TransactionAccess, mail_counts};
use assurance_work::{CallError, CallOutcome, EnqueueJobRequest, UnitOfWork};

const WORKSPACE: WorkspaceId = WorkspaceId(Uuid::from_u128(7));
const LANE: Lane = Lane::Delivery;
const PATIENCE: Duration = Duration::from_secs(20);

type Answer = Result<Result<JobOutcome, JobFailure>, CallError>;

/// Returns an area that runs each job by itself, with a closure that may use the
/// unit of work.
fn area<F>(run: F) -> Arc<dyn AreaCode>
where
    F: for<'a> Fn(&'a mut UnitOfWork, &'a JobRun) -> BoxFuture<'a, Answer> + Send + Sync + 'static,
{
    together::area_with_batches(1, move |unit, jobs| {
        let ended = run(unit, &jobs[0]);
        Box::pin(async { ended.await.map(|ended| ended.map(|outcome| vec![outcome])) })
    })
}

fn done() -> Answer {
    Ok(Ok(JobOutcome::Done))
}

/// The only area, `notes`; `None` while it is not live.
pub(super) type LiveArea = Arc<Mutex<Option<Arc<dyn AreaCode>>>>;

/// Workers of a test.
struct Bench {
    store: Store,
    live: LiveArea,
    workers: Option<Workers>,
}

impl Bench {
    async fn start(store: &Store, code: Arc<dyn AreaCode>) -> Self {
        Self::with(store, Some(code), |_| {}).await
    }

    async fn with(
        store: &Store,
        code: Option<Arc<dyn AreaCode>>,
        set: impl Fn(&mut config::JobsConfig),
    ) -> Self {
        Self::by(Clock::System, store, code, set).await
    }

    async fn by(
        clock: Clock,
        store: &Store,
        code: Option<Arc<dyn AreaCode>>,
        set: impl Fn(&mut config::JobsConfig),
    ) -> Self {
        let mut settings = config::JobsConfig {
            poll_ms: 50,
            heartbeat_ms: 50,
            slice_ms: 0,
            ..config::JobsConfig::default()
        };
        settings.lanes.delivery.backoff_first_ms = 1;
        set(&mut settings);
        let live = Arc::new(Mutex::new(code));
        let deps = deps(store, clock, areas(&live), settings);
        let workers = Some(start(deps).await.unwrap());
        Self { store: store.clone(), live, workers }
    }

    async fn enqueue(&self, jobs: &[NewJob]) {
        insert(&self.store, jobs).await;
        jobs.iter().for_each(|job| self.store.wake().wake(job.lane, job.available_at));
    }

    /// Waits until the workspace's jobs, sorted by id, have these statuses.
    async fn becomes(&self, expected: &[JobStatus]) -> Vec<JobForMembers> {
        let mut seen = Vec::new();
        let begun = std::time::Instant::now();
        while begun.elapsed() < PATIENCE {
            seen = list(&self.store).await;
            if seen.iter().map(|job| job.status).eq(expected.iter().copied()) {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("expected {expected:?}, and there is {seen:#?}");
    }

    async fn drain(&mut self, grace_ms: u64) {
        let workers = self.workers.take().expect("drained once");
        workers.drain(Duration::from_millis(grace_ms)).await;
    }
}

pub(super) fn deps(
    store: &Store,
    clock: Clock,
    areas: AreaLookupFns,
    settings: config::JobsConfig,
) -> WorkerDeps {
    let (store, keys) = (store.clone(), Arc::new(Keys::new([7; 32])));
    // Nothing is recorded, so no folder is needed.
    let recordings = Recordings::open(config::RecordingsConfig::default(), PathBuf::new()).unwrap();
    WorkerDeps { store, keys, clock, areas, settings, recordings }
}

pub(super) fn areas(live: &LiveArea) -> AreaLookupFns {
    let child =
        JobSpec { name: "child".into(), lane: Lane::Ingest, max_attempts: 1, timeout_ms: 9 };
    let jobs = [("child".to_owned(), child)].into();
    let scope = Arc::new(AreaPolicy { area: "notes".into(), jobs, ..AreaPolicy::default() });
    let (names, find) = (Arc::clone(live), Arc::clone(live));
    AreaLookupFns {
        names: Arc::new(move || names.lock().iter().map(|_| "notes".to_owned()).collect()),
        find: Arc::new(move |name, _| {
            let code = find.lock().clone().filter(|_| name == "notes")?;
            Some(RunnableArea { code, scope: Arc::clone(&scope), observer: None })
        }),
    }
}

async fn insert(store: &Store, jobs: &[NewJob]) {
    let mut c = store.writer().await.unwrap();
    store::jobs::insert(&mut c, jobs, Clock::System.now()).await.unwrap();
}

async fn list(store: &Store) -> Vec<JobForMembers> {
    let mut c = store.reader().await.unwrap();
    let end_of_time = Timestamp(i64::MAX);
    let mut all = store::jobs::overview(&mut c, WORKSPACE, end_of_time, 1_000).await.unwrap();
    all.sort_by_key(|job| job.id.0);
    all
}

async fn steal(store: &Store, now: Timestamp) -> Option<LeasedJob> {
    let areas = ["notes".to_owned()];
    let (worker, lease) = (Uuid::new_v4(), Uuid::new_v4());
    let flows = [(JobFairnessKey { workspace: WORKSPACE, resource: None }, 1)];
    let claim = ClaimRequest { lane: LANE, flows: &flows, areas: &areas, worker, lease };
    let mut c = store.writer().await.unwrap();
    store::jobs::heartbeat(&mut c, worker, now.plus_ms(3_600_000)).await.unwrap();
    store::jobs::claim(&mut c, claim, now).await.unwrap().pop()
}

on_both! {
    async fn a_job_runs_once_and_an_event_leaves_nothing_behind(store: &Store) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let code = area(move |unit, run| {
            assert!(unit.spec().in_job && unit.spec().actor.is_none());
            log.lock().push((run.id.0.as_u128(), run.kind.clone(), run.attempt));
            Box::pin(async { done() })
        });
        let mut bench = Bench::start(store, code).await;
        bench.enqueue(&[job(1), NewJob { kind: EVENT_KIND.into(), ..job(2) }]).await;
        bench.becomes(&[JobStatus::Succeeded]).await;
        bench.drain(1_000).await;
        seen.lock().sort();
        assert_eq!(*seen.lock(), [(1, "tidy".to_owned(), 1), (2, "event".to_owned(), 1)]);
    }

    async fn merged_events_that_were_published_before_the_run_are_one_run(store: &Store) {
        let runs = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&runs);
        let code = area(move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { done() })
        });
        let merged = |n| NewJob { kind: MERGED_EVENTS_KIND.into(), ..job(n) };
        let later = Clock::System.now().plus_ms(3_600_000);
        let mut jobs: Vec<NewJob> = (0..100).map(merged).collect();
        jobs.push(NewJob { available_at: later, ..merged(100) });
        insert(store, &jobs).await;
        let mut bench = Bench::start(store, code).await;
        while list(store).await.len() > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        bench.drain(1_000).await;
        // As many as the lane's places for one workspace may have been claimed together.
        assert!((1..=12).contains(&runs.load(Ordering::SeqCst)), "{runs:?}");
        assert_eq!(list(store).await[0].available_at, later);
    }

    async fn a_last_attempt_that_fails_takes_no_merged_events_with_it(store: &Store) {
        let ran = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&ran);
        let code = area(move |_, run| {
            let n = run.id.0.as_u128();
            log.lock().push(n);
            let fails = || Ok(Err(JobFailure::Retry("not yet".into())));
            Box::pin(async move { if n == 1 { fails() } else { done() } })
        });
        let merged = NewJob { kind: MERGED_EVENTS_KIND.into(), max_attempts: 1, ..job(1) };
        let later = NewJob { id: job(2).id, available_at: Timestamp(1), ..merged.clone() };
        insert(store, &[merged, later]).await;
        let one_by_one = |jobs: &mut config::JobsConfig| jobs.lanes.delivery.capacity = 1;
        let mut bench = Bench::with(store, Some(code), one_by_one).await;
        bench.becomes(&[JobStatus::Dead]).await;
        bench.drain(1_000).await;
        assert_eq!(*ran.lock(), [1, 2]);
    }

    async fn a_run_in_steps_keeps_each_step_and_counts_as_one_attempt(store: &Store) {
        let code = area(|unit, run| {
            let step: u32 = run.checkpoint.as_deref().map_or(0, |text| text.parse().unwrap());
            assert_eq!(run.attempt, 1);
            let wish = EnqueueJobRequest {
                kind: "child".into(),
                payload: "{}".into(),
                available_at: Some(Timestamp(i64::MAX)),
                ..EnqueueJobRequest::default()
            };
            unit.enqueue(wish).unwrap();
            let outcome = match step {
                4 => JobOutcome::Done,
                step => JobOutcome::Continue((step + 1).to_string()),
            };
            Box::pin(async { Ok(Ok(outcome)) })
        });
        // Job 1 runs with a new lease for each step, and job 2 with one lease for all steps.
        for (n, slice_ms) in [(1, 0), (2, 60_000)] {
            let set = |jobs: &mut config::JobsConfig| jobs.slice_ms = slice_ms;
            let mut bench = Bench::with(store, Some(Arc::clone(&code)), set).await;
            bench.enqueue(&[job(n)]).await;
            let mut expected = vec![JobStatus::Succeeded; usize::try_from(n).unwrap()];
            expected.extend(vec![JobStatus::Queued; 5 * usize::try_from(n).unwrap()]);
            let seen = bench.becomes(&expected).await;
            assert_eq!(seen[0].attempts, 1);
            bench.drain(1_000).await;
        }
    }

    async fn what_fails_is_tried_again_until_its_attempts_are_used_up(store: &Store) {
        let (full, quota) = (store.clone(), store::Quota { area: 0, workspace: 0 });
        full.note_stored(WORKSPACE, 1, quota);
        let code = area(move |_, run| {
            let answer = match (run.id.0.as_u128(), run.attempt) {
                (1, 1) => Ok(Err(JobFailure::Retry("not yet".into()))),
                (1, 2) => Err(CallError::Trap("secret: backtrace".into())),
                (2, _) => Err(CallError::Trap("secret: backtrace".into())),
                (3, _) => Ok(Err(JobFailure::Fail("never".into()))),
                (4, 1) => panic!("the host's own mistake"),
                (5, _) => Ok(Ok(JobOutcome::Retry(Timestamp(0), "kept, but again".into()))),
                (6, _) => full.check_quota(WORKSPACE, "notes", quota)
                    .map_or_else(|error| Err(CallError::Store(error)), |()| done()),
                _ => done(),
            };
            Box::pin(async { answer })
        });
        let mut bench = Bench::start(store, code).await;
        bench.enqueue(&[job(1), job(2), job(3), job(4), job(5), job(6)]).await;
        let (ok, dead) = (JobStatus::Succeeded, JobStatus::Dead);
        let seen = bench.becomes(&[ok, dead, JobStatus::Failed, ok, dead, dead]).await;
        bench.drain(1_000).await;
        assert_eq!(seen.iter().map(|job| job.attempts).collect::<Vec<_>>(), [3, 3, 1, 2, 3, 3]);
        let mut errors: Vec<_> = seen.iter().map(|job| job.last_error.as_deref()).collect();
        let full = errors.pop().flatten().unwrap_or_default();
        assert!(full.contains("storage limit") && full.contains("delete data"), "{full}");
        let (trapped, again) = (Some("the area's code failed"), Some("kept, but again"));
        assert_eq!(errors, [None, trapped, Some("never"), None, again]);
    }

    async fn a_lane_never_runs_more_jobs_than_its_capacity(store: &Store) {
        let counts = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
        let shared = Arc::clone(&counts);
        let code = area(move |_, _| {
            let counts = Arc::clone(&shared);
            Box::pin(async move {
                let now = counts.0.fetch_add(1, Ordering::SeqCst) + 1;
                counts.1.fetch_max(now, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(20)).await;
                counts.0.fetch_sub(1, Ordering::SeqCst);
                done()
            })
        });
        let three = |jobs: &mut config::JobsConfig| jobs.lanes.delivery.capacity = 3;
        let mut bench = Bench::with(store, Some(code), three).await;
        bench.enqueue(&(1..=20).map(job).collect::<Vec<_>>()).await;
        bench.becomes(&[JobStatus::Succeeded; 20]).await;
        bench.drain(1_000).await;
        assert_eq!(counts.1.load(Ordering::SeqCst), 3);
    }

    async fn a_lost_race_is_run_again_at_once_as_the_same_call_and_then_locked(store: &Store) {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&calls);
        let code = area(move |unit, run| {
            let mut calls = log.lock();
            calls.push((unit.spec().locked, run.call.clone()));
            let lost = calls.len() <= 3;
            Box::pin(async move {
                if lost { Err(CallError::Store(store::Error::RunAgain)) } else { done() }
            })
        });
        let mut bench = Bench::start(store, code).await;
        bench.enqueue(&[job(1)]).await;
        let seen = bench.becomes(&[JobStatus::Succeeded]).await;
        bench.drain(1_000).await;
        assert_eq!(seen[0].attempts, 1);
        let calls = calls.lock();
        assert_eq!(calls.iter().map(|c| c.0).collect::<Vec<_>>(), [false, false, true, true]);
        assert!(calls.iter().all(|call| call.1 == calls[0].1));
    }

    async fn a_run_that_keeps_losing_uses_up_no_attempt(store: &Store) {
        let runs = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&runs);
        let code = area(move |unit, _| {
            let run = count.fetch_add(1, Ordering::SeqCst);
            assert_eq!(unit.spec().locked, run >= 2);
            Box::pin(async move {
                if run < 12 { Err(CallError::Store(store::Error::RunAgain)) } else { done() }
            })
        });
        let mut bench = Bench::start(store, code).await;
        bench.enqueue(&[NewJob { max_attempts: 1, ..job(1) }]).await;
        let seen = bench.becomes(&[JobStatus::Succeeded]).await;
        bench.drain(1_000).await;
        assert_eq!((seen[0].attempts, runs.load(Ordering::SeqCst)), (1, 13));
    }

    async fn what_a_run_did_after_its_lease_was_lost_is_dropped(store: &Store) {
        let stolen = Arc::new(Mutex::new(None));
        let (thief, booty) = (store.clone(), Arc::clone(&stolen));
        let code = area(move |unit, _| {
            let (thief, booty) = (thief.clone(), Arc::clone(&booty));
            let (kind, payload) = ("child".into(), "{}".into());
            unit.enqueue(EnqueueJobRequest { kind, payload, ..EnqueueJobRequest::default() }).unwrap();
            Box::pin(async move {
                // For other processes the last heartbeat was an hour ago.
                let later = Clock::System.now().plus_ms(3_600_000);
                let mut c = thief.writer().await.unwrap();
                store::jobs::recover(&mut c, Uuid::new_v4(), later).await.unwrap();
                drop(c);
                *booty.lock() = steal(&thief, later).await;
                done()
            })
        });
        let mut bench = Bench::start(store, code).await;
        bench.enqueue(&[job(1)]).await;
        while stolen.lock().is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bench.drain(1_000).await;
        let all = list(store).await;
        assert_eq!(all.len(), 1, "the child is dropped: {all:?}");
        assert_eq!((all[0].status, all[0].attempts), (JobStatus::Running, 2));
    }

    async fn the_jobs_of_a_killed_process_run_again(store: &Store) {
        insert(store, &[job(1)]).await;
        let long_ago = Timestamp(1);
        let held = steal(store, long_ago).await.expect("it is there");
        assert_eq!(held.attempt, 1);
        let code = area(|_, run| {
            assert_eq!(run.attempt, 2);
            Box::pin(async { done() })
        });
        let mut bench = Bench::start(store, code).await;
        bench.becomes(&[JobStatus::Succeeded]).await;
        bench.drain(1_000).await;
    }

    async fn a_drain_waits_for_what_ends_and_gives_back_what_does_not(store: &Store) {
        let code = area(|_, run| {
            let long = run.id.0.as_u128() == 2;
            Box::pin(async move {
                let ms = if long { 60_000 } else { 300 };
                tokio::time::sleep(Duration::from_millis(ms)).await;
                done()
            })
        });
        let mut bench = Bench::start(store, code).await;
        bench.enqueue(&[job(1), job(2)]).await;
        bench.becomes(&[JobStatus::Running, JobStatus::Running]).await;
        bench.drain(1_000).await;
        let all = bench.becomes(&[JobStatus::Succeeded, JobStatus::Queued]).await;
        assert_eq!(all[1].attempts, 0, "as if it had never been taken");
        bench.enqueue(&[job(3)]).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        bench.becomes(&[JobStatus::Succeeded, JobStatus::Queued, JobStatus::Queued]).await;
    }

    async fn a_job_of_an_area_that_is_not_loaded_waits_unharmed(store: &Store) {
        let mut bench = Bench::with(store, None, |_| {}).await;
        bench.enqueue(&[job(1)]).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let waiting = bench.becomes(&[JobStatus::Queued]).await;
        assert_eq!(waiting[0].attempts, 0);
        *bench.live.lock() = Some(area(|_, _| Box::pin(async { done() })));
        bench.becomes(&[JobStatus::Succeeded]).await;
        bench.drain(1_000).await;
    }

    async fn a_job_for_later_runs_when_it_is_due(store: &Store) {
        let slow_poll = |jobs: &mut config::JobsConfig| jobs.poll_ms = 60_000;
        let code = area(|_, _| Box::pin(async { done() }));
        let mut bench = Bench::with(store, Some(code), slow_poll).await;
        let begun = Clock::System.now();
        let due = begun.plus_ms(400);
        bench.enqueue(&[NewJob { available_at: due, ..job(1) }]).await;
        bench.becomes(&[JobStatus::Succeeded]).await;
        let took = Clock::System.now().ms_since(begun);
        assert!((400..5_000).contains(&took), "{took} ms");
        bench.drain(1_000).await;
    }

    async fn a_job_that_is_due_earlier_does_not_wait_for_a_later_one(store: &Store) {
        let slow_poll = |jobs: &mut config::JobsConfig| jobs.poll_ms = 60_000;
        let code = area(|_, _| Box::pin(async { done() }));
        let mut bench = Bench::with(store, Some(code), slow_poll).await;
        let begun = Clock::System.now();
        for (n, due_in_ms) in [(1, 600_000), (2, 600_000), (3, 400), (4, 300), (5, 0)] {
            bench.enqueue(&[NewJob { available_at: begun.plus_ms(due_in_ms), ..job(n) }]).await;
            // The dispatcher is waiting again.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let (waits, ends) = (JobStatus::Queued, JobStatus::Succeeded);
        bench.becomes(&[waits, waits, ends, ends, ends]).await;
        let took = Clock::System.now().ms_since(begun);
        assert!((400..5_000).contains(&took), "{took} ms");
        bench.drain(1_000).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_exceeds_a_timeout_of_postgresql_uses_up_an_attempt() {
    let Some(fresh) = testing::fresh(Backend::Postgres).await else { return };
    let mut settings = fresh.settings.clone();
    settings.timeouts.idle_in_transaction_ms = 50;
    settings.timeouts.statement_ms = 300;
    let hasty = Store::open(&settings).await.unwrap();
    let code = area(move |_, run| {
        let (store, idles) = (hasty.clone(), run.id.0.as_u128() == 1);
        Box::pin(async move {
            let mut tx = store.begin(TransactionAccess::WriteLocked).await.unwrap();
            if idles {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            // Waits for the test, which holds the table.
            let counted = mail_counts::take_back(&mut tx, "ada").await;
            counted.map_or_else(|error| Err(CallError::Store(error)), |()| done())
        })
    });
    let mut locked = fresh.store.begin(TransactionAccess::WriteLocked).await.unwrap();
    testing::execute(&mut locked, "LOCK TABLE mail_counts").await;
    let mut bench = Bench::start(&fresh.store, code).await;
    bench.enqueue(&[1, 2].map(|n| NewJob { max_attempts: 1, ..job(n) })).await;
    let seen = bench.becomes(&[JobStatus::Dead, JobStatus::Dead]).await;
    bench.drain(1_000).await;
    for job in seen {
        let error = job.last_error.unwrap_or_default();
        assert!(error.contains("timeout of the database"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_clock_is_ahead_takes_nobody_s_jobs() {
    let Some(fresh) = testing::fresh(Backend::Postgres).await else { return };
    let store = &fresh.store;
    let code = area(|_, _| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            done()
        })
    });
    let mut healthy = Bench::start(store, Arc::clone(&code)).await;
    healthy.enqueue(&[job(1)]).await;
    healthy.becomes(&[JobStatus::Running]).await;
    let ahead = Clock::System.now().plus_ms(3_600_000);
    let ahead = Clock::Manual(Arc::new(AtomicI64::new(ahead.0)));
    let mut hasty = Bench::by(ahead, store, Some(code), |_| {}).await;
    let seen = healthy.becomes(&[JobStatus::Succeeded]).await;
    assert_eq!((seen[0].attempts, &seen[0].last_error), (1, &None));
    hasty.drain(1_000).await;
    healthy.drain(1_000).await;
}
