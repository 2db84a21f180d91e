//! Tests of the queue, each on both databases.

mod flows;
mod merged;
mod view;

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use uuid::Uuid;

use super::*;
use crate::Store;
use crate::testing::{self, on_both};
use assurance_core::domain::id::{JobId, WorkspaceId};
use assurance_core::domain::job::{JobFairnessKey, JobStatus, Lane, LeasedJob};
use assurance_core::domain::queue::{
    JobFilter, JobForMembers, MemberJobAction, PendingMemberJobAction, WorkspaceLaneLoad,
};

const LANE: Lane = Lane::Delivery;
const WORKSPACE: WorkspaceId = WorkspaceId(Uuid::from_u128(7));
/// Time of the views; no job of these tests is due later, unless its test says so.
const NOW: Timestamp = Timestamp(100);

fn job(n: u128) -> NewJob {
    NewJob {
        payload: format!("{{\"n\":{n}}}"),
        resource: Some(Uuid::from_u128(99)),
        timeout_ms: 1_000,
        ..testing::job(n)
    }
}

type Page = Result<(Vec<u128>, Option<String>), Error>;

/// The queue for tests; each step uses a connection of its own.
struct Queue<'a>(&'a Store);

impl Queue<'_> {
    async fn insert(&self, jobs: &[NewJob]) {
        let mut c = self.0.writer().await.unwrap();
        insert(&mut c, jobs, Timestamp(1)).await.unwrap();
    }

    async fn claim(&self, worker: Uuid, limit: u32, now: i64) -> Vec<LeasedJob> {
        let areas = ["other".to_owned(), "notes".to_owned()];
        let mut c = self.0.writer().await.unwrap();
        let mut waiting = oldest(&mut c, LANE, &areas).await.unwrap();
        waiting.truncate(limit as usize);
        let mut flows = BTreeMap::<JobFairnessKey, u32>::new();
        waiting.iter().for_each(|job| *flows.entry(job.flow).or_default() += 1);
        let flows: Vec<(JobFairnessKey, u32)> = flows.into_iter().collect();
        let lease = Uuid::new_v4();
        let claim = ClaimRequest { lane: LANE, flows: &flows, areas: &areas, worker, lease };
        if flows.is_empty() {
            return Vec::new();
        }
        super::claim(&mut c, claim, Timestamp(now)).await.unwrap()
    }

    async fn end(&self, leased: &LeasedJob, how: JobRunEndKind, now: i64) -> Result<(), Error> {
        let job = &leased.job;
        let how = JobRunEnd {
            workspace: job.workspace,
            jobs: vec![job.id],
            lease: leased.lease,
            how,
            progress: None,
        };
        let mut c = self.0.writer().await.unwrap();
        end(&mut c, &how, Timestamp(now)).await
    }

    async fn beat(&self, worker: Uuid, expires_at: i64) {
        let mut c = self.0.writer().await.unwrap();
        heartbeat(&mut c, worker, Timestamp(expires_at)).await.unwrap();
    }

    async fn recover(&self, now: i64) -> u64 {
        let mut c = self.0.writer().await.unwrap();
        recover(&mut c, Uuid::new_v4(), Timestamp(now)).await.unwrap()
    }

    async fn list(&self) -> Vec<JobForMembers> {
        let mut c = self.0.reader().await.unwrap();
        overview(&mut c, WORKSPACE, NOW, 1_000).await.unwrap()
    }

    async fn load(&self) -> WorkspaceLaneLoad {
        let mut c = self.0.reader().await.unwrap();
        loads(&mut c, WORKSPACE, NOW).await.unwrap()[&LANE]
    }

    async fn change(&self, job: JobId, how: MemberJobAction, now: i64) -> Result<(), Error> {
        let wanted = PendingMemberJobAction { job, lane: LANE, how };
        let mut c = self.0.writer().await.unwrap();
        change(&mut c, WORKSPACE, &wanted, Timestamp(now)).await
    }

    async fn page(&self, filter: &JobFilter, cursor: Option<&str>) -> Page {
        let mut c = self.0.reader().await.unwrap();
        let (jobs, next) = page(&mut c, (WORKSPACE, NOW), filter, cursor, 2, &[5; 32]).await?;
        Ok((jobs.iter().map(|job| job.id.0.as_u128()).collect(), next))
    }

    async fn only(&self) -> JobForMembers {
        let mut all = self.list().await;
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }
}

on_both! {
    async fn a_job_comes_out_of_the_queue_as_it_went_in(store: &Store) {
        let queue = Queue(store);
        let put = NewJob { dedupe_key: Some("k".into()), ..job(1) };
        queue.insert(std::slice::from_ref(&put)).await;
        let got = queue.claim(Uuid::new_v4(), 10, 5).await;
        assert_eq!(got.len(), 1);
        assert_eq!((&got[0].job, got[0].attempt, &got[0].checkpoint), (&put, 1, &None));
    }

    async fn progress_is_stored_with_a_step_and_shown_until_the_job_ends(store: &Store) {
        let (queue, about) = (Queue(store), Uuid::from_u128(7));
        queue.insert(&[NewJob { resource: Some(about), ..job(1) }, job(2)]).await;
        let of = async || {
            let mut c = store.reader().await.unwrap();
            progress_of(&mut c, WORKSPACE, about).await.unwrap()
        };
        let leased = queue.claim(Uuid::new_v4(), 1, 5).await.remove(0);
        let step = |progress, how| JobRunEnd {
            workspace: WORKSPACE,
            jobs: vec![leased.job.id],
            lease: leased.lease,
            how,
            progress,
        };
        let goes_on = || JobRunEndKind::Continue { checkpoint: "{}".into(), requeue: false };
        let some = JobProgress { done: 3, total: 10 };
        let mut c = store.writer().await.unwrap();
        end(&mut c, &step(None, goes_on()), Timestamp(6)).await.unwrap();
        assert_eq!(of().await, []);
        end(&mut c, &step(Some(some), goes_on()), Timestamp(7)).await.unwrap();
        // A step that reports nothing keeps it.
        end(&mut c, &step(None, goes_on()), Timestamp(8)).await.unwrap();
        drop(c);
        let job = &leased.job;
        assert_eq!(of().await, [(job.area.clone(), job.kind.clone(), some)]);
        let listed = queue.list().await;
        let found = listed.iter().find(|listed| listed.id == job.id);
        assert_eq!(found.and_then(|listed| listed.progress), Some(some));
        queue.end(&leased, JobRunEndKind::Done { keep: true }, 9).await.unwrap();
        assert_eq!(of().await, []);
    }

    async fn only_due_jobs_of_the_lane_and_of_known_areas_are_claimed_oldest_first(store: &Store) {
        let queue = Queue(store);
        queue.insert(&[
            NewJob { available_at: Timestamp(4), ..job(1) },
            NewJob { available_at: Timestamp(3), ..job(2) },
            NewJob { available_at: Timestamp(6), ..job(3) },
            NewJob { lane: Lane::Scanner, ..job(4) },
            NewJob { area: "note".into(), ..job(5) },
        ]).await;
        let ids: Vec<u128> =
            queue.claim(Uuid::new_v4(), 10, 5).await.iter().map(|l| l.job.id.0.as_u128()).collect();
        assert_eq!(ids, [2, 1]);
        let mut c = store.reader().await.unwrap();
        let next = next_due(&mut c, LANE, &["notes".into()], Timestamp(5)).await.unwrap();
        assert_eq!(next, Some(Timestamp(6)));
    }

    async fn of_jobs_with_one_key_one_waits_or_runs_at_a_time(store: &Store) {
        let queue = Queue(store);
        let keyed = |n, key: &str| NewJob { dedupe_key: Some(key.into()), ..job(n) };
        let elsewhere = NewJob { workspace: WorkspaceId(Uuid::from_u128(8)), ..keyed(3, "k") };
        queue.insert(&[keyed(1, "k"), keyed(2, "k"), elsewhere, keyed(4, "other")]).await;
        let taken = queue.claim(Uuid::new_v4(), 10, 5).await;
        let ids: HashSet<u128> = taken.iter().map(|leased| leased.job.id.0.as_u128()).collect();
        assert_eq!(ids, HashSet::from([1, 3, 4]));
        queue.insert(&[keyed(5, "k")]).await;
        assert_eq!(queue.list().await.len(), 2, "its predecessor still runs");
        let first = taken.iter().find(|leased| leased.job.id.0.as_u128() == 1).unwrap();
        queue.end(first, JobRunEndKind::Done { keep: true }, 6).await.unwrap();
        queue.insert(&[keyed(6, "k")]).await;
        assert_eq!(queue.claim(Uuid::new_v4(), 10, 7).await[0].job.id.0.as_u128(), 6);
    }

    async fn a_lost_workers_job_runs_again_and_its_late_end_is_refused(store: &Store) {
        let queue = Queue(store);
        let (lost, other) = (Uuid::new_v4(), Uuid::new_v4());
        queue.insert(&[job(1)]).await;
        queue.beat(lost, 100).await;
        let first = queue.claim(lost, 1, 5).await.remove(0);
        assert_eq!(queue.recover(99).await, 0, "its worker is alive");
        assert_eq!(queue.recover(100).await, 1);
        let again = queue.only().await;
        assert_eq!((again.status, again.position), (JobStatus::Retrying, None));
        let second = queue.claim(other, 1, 100).await.remove(0);
        assert_eq!((second.attempt, second.job.id), (2, first.job.id));
        let late = queue.end(&first, JobRunEndKind::Done { keep: false }, 101).await;
        assert!(matches!(late, Err(Error::LeaseLost)), "{late:?}");
        queue.end(&second, JobRunEndKind::Done { keep: true }, 102).await.unwrap();
        assert_eq!(queue.only().await.status, JobStatus::Succeeded);
    }

    async fn a_job_that_takes_its_workers_down_is_dead_in_the_end(store: &Store) {
        let queue = Queue(store);
        queue.insert(&[NewJob { max_attempts: 1, ..job(1) }]).await;
        for run in 1..=4 {
            let taken = queue.claim(Uuid::new_v4(), 1, run * 10).await;
            assert_eq!(taken[0].attempt, u32::try_from(run).unwrap());
            queue.recover(run * 10).await;
        }
        let dead = queue.only().await;
        assert_eq!(dead.status, JobStatus::Dead);
        assert_eq!(dead.last_error.as_deref(), Some("the worker was lost"));
    }

    async fn what_a_process_gives_back_counts_as_never_taken(store: &Store) {
        let queue = Queue(store);
        let worker = Uuid::new_v4();
        queue.insert(&[job(1), job(2)]).await;
        let first = queue.claim(worker, 1, 5).await.remove(0);
        queue.claim(worker, 1, 5).await;
        let mut c = store.writer().await.unwrap();
        assert_eq!(release(&mut c, worker, Some(first.lease), Timestamp(6)).await.unwrap(), 1);
        assert_eq!(release(&mut c, worker, None, Timestamp(6)).await.unwrap(), 1);
        drop(c);
        let again = queue.claim(Uuid::new_v4(), 10, 7).await;
        assert_eq!(again.iter().map(|leased| leased.attempt).collect::<Vec<_>>(), [1, 1]);
    }

    async fn a_dead_job_is_kept_with_its_last_error_until_it_is_swept(store: &Store) {
        let queue = Queue(store);
        queue.insert(&[job(1), job(2), job(3)]).await;
        let taken = queue.claim(Uuid::new_v4(), 3, 5).await;
        queue.end(&taken[0], JobRunEndKind::Dead { error: "no luck".into() }, 10).await.unwrap();
        queue.end(&taken[1], JobRunEndKind::Done { keep: true }, 10).await.unwrap();
        queue.end(&taken[2], JobRunEndKind::Done { keep: false }, 10).await.unwrap();
        assert_eq!(queue.list().await.len(), 2);
        let mut c = store.writer().await.unwrap();
        assert_eq!(sweep(&mut c, Timestamp(11), Timestamp(10)).await.unwrap(), 1);
        drop(c);
        let dead = queue.only().await;
        assert_eq!((dead.status, dead.last_error.as_deref()), (JobStatus::Dead, Some("no luck")));
        let mut c = store.writer().await.unwrap();
        let counted = failed(&mut c).await.unwrap();
        assert_eq!(counted, [(JobStatus::Failed, 0), (JobStatus::Dead, 1)]);
        assert_eq!(sweep(&mut c, Timestamp(0), Timestamp(11)).await.unwrap(), 1);
    }

    async fn a_job_that_is_retried_during_a_sweep_stays(store: &Store) {
        let queue = Queue(store);
        queue.insert(&[job(1)]).await;
        let taken = queue.claim(Uuid::new_v4(), 1, 5).await.remove(0);
        queue.end(&taken, JobRunEndKind::Dead { error: "e".into() }, 6).await.unwrap();
        let mut tx = store.begin(crate::TransactionAccess::WriteLocked).await.unwrap();
        let (id, how) = (taken.job.id, MemberJobAction::Retry);
        let retry = PendingMemberJobAction { job: id, lane: LANE, how };
        change(&mut tx, WORKSPACE, &retry, Timestamp(50)).await.unwrap();
        let sweeping = store.write(async |c| sweep(c, Timestamp(20), Timestamp(20)).await);
        let retrying = async {
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            tx.commit().await.unwrap();
        };
        let (swept, ()) = tokio::join!(sweeping, retrying);
        assert_eq!(swept.unwrap(), 0);
        assert_eq!(queue.only().await.status, JobStatus::Queued);
    }

    async fn a_cancelled_run_keeps_nothing_and_may_be_retried(store: &Store) {
        let queue = Queue(store);
        let keyed = |n| NewJob { dedupe_key: Some("k".into()), ..job(n) };
        queue.insert(&[keyed(1)]).await;
        let id = job(1).id;
        let taken = queue.claim(Uuid::new_v4(), 1, 5).await;
        queue.change(id, MemberJobAction::Cancel("cancelled".into()), 6).await.unwrap();
        let late = queue.end(&taken[0], JobRunEndKind::Done { keep: true }, 7).await;
        assert!(matches!(late, Err(Error::LeaseLost)), "{late:?}");
        let seen = queue.only().await;
        assert_eq!((seen.status, seen.last_error.as_deref()), (JobStatus::Failed, Some("cancelled")));

        // The job's dedupe key becomes free and is taken by another job.
        queue.insert(&[keyed(2)]).await;
        let mut c = store.reader().await.unwrap();
        assert!(is_superseded(&mut c, WORKSPACE, id).await.unwrap());
        drop(c);
        let lost = queue.change(id, MemberJobAction::Retry, 8).await;
        assert!(matches!(lost, Err(Error::RunAgain)), "{lost:?}");
        queue.change(job(2).id, MemberJobAction::Cancel("too".into()), 8).await.unwrap();
        queue.change(id, MemberJobAction::Retry, 9).await.unwrap();
        let again = queue.claim(Uuid::new_v4(), 2, 9).await;
        assert_eq!(again.iter().map(|l| (l.job.id, l.attempt)).collect::<Vec<_>>(), [(id, 1)]);
    }

    async fn a_thousand_jobs_go_in_at_once(store: &Store) {
        let jobs: Vec<NewJob> = (0..1_000).map(job).collect();
        Queue(store).insert(&jobs).await;
        assert_eq!(Queue(store).load().await.queued, 1_000);
    }

    async fn a_jobs_status_follows_the_rules_whatever_happens(store: &Store) {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let steps = proptest::collection::vec(step(), 1..25);
        for n in 0..40 {
            let steps = steps.new_tree(&mut runner).unwrap().current();
            follow(&Queue(store), n, &steps).await;
        }
    }
}

/// A random event in the life of a job.
#[derive(Clone, Debug)]
enum Event {
    Claim,
    End(JobRunEndKind),
    /// An end under a lease that the job no longer has.
    LateEnd(JobRunEndKind),
    LoseWorker,
    Change(MemberJobAction),
}

fn step() -> impl Strategy<Value = Event> {
    let at = Timestamp(0);
    let how = prop_oneof![
        1 => Just(JobRunEndKind::Done { keep: true }),
        3 => any::<bool>().prop_map(|requeue| {
            JobRunEndKind::Continue { checkpoint: "{}".into(), requeue }
        }),
        4 => Just(JobRunEndKind::Retry { at, error: "e".into() }),
        3 => Just(JobRunEndKind::Release { at }),
        1 => Just(JobRunEndKind::Failed { error: "e".into() }),
        1 => Just(JobRunEndKind::Dead { error: "e".into() }),
    ];
    prop_oneof![
        6 => Just(Event::Claim),
        4 => how.clone().prop_map(Event::End),
        1 => how.prop_map(Event::LateEnd),
        1 => Just(Event::LoseWorker),
        1 => Just(Event::Change(MemberJobAction::Retry)),
        1 => Just(Event::Change(MemberJobAction::Cancel("c".into()))),
    ]
}

/// A model of the queue's rules without SQL.
struct Model {
    status: JobStatus,
    attempts: u32,
    checkpoint: bool,
}

impl Model {
    fn claim(&mut self) -> bool {
        let waits = matches!(self.status, JobStatus::Queued | JobStatus::Retrying);
        if waits {
            self.status = JobStatus::Running;
            self.attempts += 1;
        }
        waits
    }

    fn end(&mut self, how: &JobRunEndKind) {
        self.status = match how {
            JobRunEndKind::Done { .. } => JobStatus::Succeeded,
            JobRunEndKind::Continue { requeue, .. } => {
                self.checkpoint = true;
                self.attempts -= u32::from(*requeue);
                if *requeue { JobStatus::Queued } else { JobStatus::Running }
            }
            JobRunEndKind::Retry { .. } => JobStatus::Retrying,
            JobRunEndKind::Release { .. } => {
                self.attempts -= 1;
                if self.attempts > 0 { JobStatus::Retrying } else { JobStatus::Queued }
            }
            JobRunEndKind::Failed { .. } => JobStatus::Failed,
            JobRunEndKind::Dead { .. } => JobStatus::Dead,
        };
    }

    fn change(&mut self, how: &MemberJobAction) -> bool {
        let ended = matches!(self.status, JobStatus::Failed | JobStatus::Dead);
        let possible = match how {
            MemberJobAction::Retry => ended,
            MemberJobAction::Cancel(_) => !ended && self.status != JobStatus::Succeeded,
        };
        if possible && *how == MemberJobAction::Retry {
            (self.status, self.attempts) = (JobStatus::Queued, 0);
        } else if possible {
            self.status = JobStatus::Failed;
        }
        possible
    }

    fn lose_worker(&mut self, max_attempts: u32) {
        if self.status == JobStatus::Running {
            let spent = self.attempts >= max_attempts + 3;
            self.status = if spent { JobStatus::Dead } else { JobStatus::Retrying };
        }
    }
}

/// Applies the events to one job in a workspace of its own and compares queue
/// and model.
async fn follow(queue: &Queue<'_>, n: u128, events: &[Event]) {
    let job = job(1_000 + n);
    let mut model = Model { status: JobStatus::Queued, attempts: 0, checkpoint: false };
    queue.insert(std::slice::from_ref(&job)).await;
    let mut held: Option<LeasedJob> = None;
    for event in events {
        match event {
            Event::Claim => {
                let taken = queue.claim(Uuid::new_v4(), 1, 9).await.pop();
                assert_eq!(taken.is_some(), model.claim(), "{events:?}");
                if let Some(taken) = taken {
                    assert_eq!(taken.attempt, model.attempts);
                    assert_eq!(taken.checkpoint.is_some(), model.checkpoint);
                    held = Some(taken);
                }
            }
            Event::End(how) => {
                let Some(lease) = &held else { continue };
                let good = model.status == JobStatus::Running;
                let ended = queue.end(lease, how.clone(), 6).await;
                assert_eq!(ended.is_ok(), good, "{ended:?} after {events:?}");
                if good {
                    model.end(how);
                }
            }
            Event::LateEnd(how) => {
                let late = LeasedJob {
                    job: job.clone(),
                    attempt: 1,
                    checkpoint: None,
                    lease: Uuid::new_v4(),
                };
                let refused = queue.end(&late, how.clone(), 6).await;
                assert!(matches!(refused, Err(Error::LeaseLost)));
            }
            Event::Change(how) => {
                let changed = queue.change(job.id, how.clone(), 6).await;
                assert_eq!(changed.is_ok(), model.change(how), "{changed:?} after {events:?}");
            }
            Event::LoseWorker => {
                queue.recover(6).await;
                model.lose_worker(job.max_attempts);
            }
        }
        let seen = queue.list().await.into_iter().find(|seen| seen.id == job.id).unwrap();
        assert_eq!((seen.status, seen.attempts), (model.status, model.attempts), "{events:?}");
    }
    // Removes the job, so that it does not affect the next case.
    if let Some(left) = queue.claim(Uuid::new_v4(), 1, 9).await.pop().or(held) {
        let _ = queue.end(&left, JobRunEndKind::Done { keep: false }, 7).await;
    }
}
