//! One job under its lease: run, commit with the job's end, and what else can
//! happen.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use rand::RngExt as _;
use tracing::Instrument as _;

use super::verdict::{self, Circumstances};
use super::{Runnable, Shared, backoff, report};
use crate::config::{self, LaneShare};
use crate::domain::area::{Call, JobRun, Origin};
use crate::domain::job::{Failure, JobEnd, JobEndKind, LeasedJob, Outcome};
use crate::recordings::{About, Export, Recorder, Sealed};
use crate::store;
use crate::work::{CallError, End, Ended, Sent, UnitOfWork, UnitSpec, end_of_run};

/// Number of write conflicts after which a run takes the workspace lock before
/// it starts.
const CONFLICTS_BEFORE_LOCK: u32 = 2;
/// How long a run is repeated after write conflicts, before the job gives its
/// place to others for a while.
const CONFLICTS_LAST: Duration = Duration::from_secs(10);
/// The longest pause after a write conflict.
const MAX_CONFLICT_PAUSE_MS: u64 = 250;
/// Beyond a job's own timeout, for code that does not keep to it.
const TIMEOUT_MARGIN: Duration = Duration::from_secs(5);
/// Before a job whose area has just gone, or is overloaded, is looked at again.
const NOT_NOW_MS: i64 = 1_000;
/// Between two tries to write a job's end.
const PAUSE: Duration = Duration::from_secs(1);

/// What became of one go at a job: it ended (without an end: the lease is
/// lost), or it lost a race.
enum Go {
    Ended(Option<JobEndKind>),
    LostRace,
}

/// Whether nobody is to blame for the failure and the run is not an attempt.
fn waits(error: &CallError) -> bool {
    use store::Error::{Full, Unavailable};
    matches!(
        error,
        CallError::Overloaded
            | CallError::Replaced
            | CallError::OverBudget(_)
            | CallError::Store(Unavailable(_) | Full(_))
    )
}

/// Runs a claimed job, step after step, until its lease ends.
pub(super) async fn run(shared: &Shared, share: LaneShare, mut leased: LeasedJob) {
    let span = tracing::info_span!(
        "job",
        "job.id" = %leased.job.id,
        "job.kind" = leased.job.kind,
        "job.attempt" = leased.attempt,
        "area.name" = leased.job.area,
        "workspace.id" = %leased.job.workspace,
    );
    let slice_ends = Instant::now() + Duration::from_millis(shared.deps.settings.slice_ms.into());
    async {
        loop {
            let begun = Instant::now();
            let step = Step { shared, share, leased: &leased, slice_ends };
            let how = step.run_or_fault().await;
            report::ended(&leased, how.as_ref(), begun.elapsed());
            match how {
                Some(JobEndKind::Continue { checkpoint, requeue: false }) => {
                    leased.checkpoint = Some(checkpoint);
                }
                Some(how) if how.waits_again() => {
                    return shared.deps.store.wake().ring(leased.job.lane);
                }
                _ => return,
            }
        }
    }
    .instrument(span)
    .await;
}

/// One transaction of a job.
struct Step<'a> {
    shared: &'a Shared,
    share: LaneShare,
    leased: &'a LeasedJob,
    slice_ends: Instant,
}

impl Step<'_> {
    /// Survives a panic: a job that nobody ends would stay under this living
    /// process's lease.
    async fn run_or_fault(&self) -> Option<JobEndKind> {
        if let Ok(how) = AssertUnwindSafe(self.run()).catch_unwind().await {
            return how;
        }
        let panicked = CallError::Host(anyhow::anyhow!("the host panicked while it ran the job"));
        self.settle(self.faulted(&panicked)).await
    }

    async fn run(&self) -> Option<JobEndKind> {
        let job = &self.leased.job;
        let Some(area) = (self.shared.deps.areas.find)(&job.area, job.workspace) else {
            return self.settle(self.not_now()).await;
        };
        // The same call at every go, so that a rerun makes the same ids.
        let run = self.job_run();
        // And what one go has sent, the next does not send again.
        let sent = Arc::default();
        let begun = Instant::now();
        let mut conflicts = 0;
        loop {
            let locked = conflicts >= CONFLICTS_BEFORE_LOCK;
            if let Go::Ended(how) = self.go(&area, &run, &sent, locked).await {
                return how;
            }
            if locked && begun.elapsed() >= CONFLICTS_LAST {
                tracing::warn!(conflicts, "a run of a job lost to other transactions each time");
                return self.settle(self.not_now()).await;
            }
            conflicts += 1;
            tokio::time::sleep(conflict_pause(conflicts)).await;
        }
    }

    async fn go(&self, area: &Runnable, run: &JobRun, sent: &Arc<Sent>, locked: bool) -> Go {
        let timeout = timeout(self.leased.job.timeout_ms, &self.shared.deps.settings);
        let recorder = self.recorder(area, run);
        let unit = self.unit(area, run, locked).after(sent).recorded(recorder.as_ref());
        let Ended { unit, result } = guarded(area.code.run(unit, run, timeout), timeout).await;
        if let Some(recorder) = recorder {
            recorder.ended(end_of_run(&result));
            self.shared.deps.recordings.keep(&recorder, false);
        }
        if let Some(witness) = &area.witness {
            witness(matches!(&result, Err(error) if error.is_areas_fault()));
        }
        let how = match (result, unit) {
            (Ok(Ok(outcome)), Some(unit)) => return self.keep(unit, outcome).await,
            (Ok(Ok(_)), None) => self.faulted(&CallError::Host(anyhow::anyhow!(
                "a run succeeded, but its unit of work was lost"
            ))),
            (Ok(Err(failure)), _) => self.dropped(failure),
            (Err(CallError::Store(error)), _) if error.lost_race() => return Go::LostRace,
            (Err(error), _) if waits(&error) => self.not_now(),
            (Err(error), _) => self.faulted(&error),
        };
        Go::Ended(self.settle(how).await)
    }

    /// Commits what the run did together with the job's end.
    async fn keep(&self, unit: UnitOfWork, outcome: Outcome) -> Go {
        let how = verdict::kept(self.leased, outcome, self.circumstances());
        let end = End { reply: None, job: Some(self.end(how.clone())) };
        let how = match unit.commit(end).await {
            Ok(()) => return Go::Ended(Some(how)),
            Err(store::Error::LeaseLost) => return Go::Ended(None),
            Err(error) if error.lost_race() => return Go::LostRace,
            Err(store::Error::Unavailable(_) | store::Error::Full(_)) => self.not_now(),
            Err(error) => self.faulted(&CallError::Store(error)),
        };
        Go::Ended(self.settle(how).await)
    }

    /// Writes the end of a run of which nothing else is kept. Tried until the
    /// database takes it, for the same reason.
    async fn settle(&self, how: JobEndKind) -> Option<JobEndKind> {
        let end = self.end(how);
        loop {
            match self.write(&end).await {
                Ok(()) => return Some(end.how),
                Err(store::Error::LeaseLost) => return None,
                Err(error) => tracing::warn!(%error, "the end of a run could not be written"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn write(&self, end: &JobEnd) -> Result<(), store::Error> {
        let deps = &self.shared.deps;
        let mut connection = deps.store.writer().await?;
        store::jobs::end(&mut connection, end, deps.clock.now()).await?;
        connection.release();
        Ok(())
    }

    fn end(&self, how: JobEndKind) -> JobEnd {
        let job = &self.leased.job;
        JobEnd { workspace: job.workspace, job: job.id, lease: self.leased.lease, how }
    }

    fn job_run(&self) -> JobRun {
        let job = &self.leased.job;
        JobRun {
            call: Call {
                workspace: job.workspace,
                now: self.shared.deps.clock.now(),
                seed: rand::rng().random(),
                origin: Origin::Job(job.id),
            },
            id: job.id,
            kind: job.kind.clone(),
            payload: job.payload.clone(),
            attempt: self.leased.attempt,
            checkpoint: self.leased.checkpoint.clone(),
        }
    }

    fn unit(&self, area: &Runnable, run: &JobRun, locked: bool) -> UnitOfWork {
        let deps = &self.shared.deps;
        let spec = UnitSpec {
            area: Arc::clone(&area.scope),
            call: run.call.clone(),
            actor: None,
            session: None,
            by_link: false,
            writes: true,
            in_job: true,
            locked,
            limits: area.scope.limits,
            habit: Some(area.scope.habits.of(&run.kind)),
        };
        UnitOfWork::new(deps.store.clone(), Arc::clone(&deps.keys), spec)
    }

    fn recorder(&self, area: &Runnable, run: &JobRun) -> Option<Arc<Recorder>> {
        let recordings = &self.shared.deps.recordings;
        if !recordings.keeps_faults() {
            return None;
        }
        let about = About {
            id: format!("job-{}-{}", run.id, run.attempt),
            at: run.call.now,
            area: area.scope.area.clone(),
            version: area.scope.version.clone(),
            digest: area.scope.digest.clone(),
            export: Export::Run,
            operation: run.kind.clone(),
            checked: false,
        };
        Some(recordings.begin(about, area.scope.meets_secrets.then_some(Sealed::Handed)))
    }

    fn circumstances(&self) -> Circumstances {
        let luck = rand::rng().random();
        Circumstances {
            now: self.shared.deps.clock.now(),
            backoff_ms: backoff::delay_ms(self.share, self.leased.attempt, luck),
            requeue: self.shared.stop.is_cancelled() || Instant::now() >= self.slice_ends,
        }
    }

    fn dropped(&self, failure: Failure) -> JobEndKind {
        verdict::dropped(self.leased, failure, self.circumstances())
    }

    /// Details are for the operator: the job's own error is shown to members.
    fn faulted(&self, error: &CallError) -> JobEndKind {
        tracing::warn!(error = %error, "a run of a job failed by itself");
        verdict::faulted(self.leased, verdict::public_text(error), self.circumstances())
    }

    /// Nobody's fault: later, and not counted.
    fn not_now(&self) -> JobEndKind {
        JobEndKind::Release { at: self.shared.deps.clock.now().plus_ms(NOT_NOW_MS) }
    }
}

/// What the area wished, within the operator's ceiling. Clipped here and not
/// at the enqueuing, so that a lower ceiling also holds for what waits already.
fn timeout(wished_ms: u32, settings: &config::Jobs) -> Duration {
    Duration::from_millis(wished_ms.min(settings.max_timeout_ms).into())
}

/// Before a run is repeated after its nth write conflict.
fn conflict_pause(conflicts: u32) -> Duration {
    let doubled = 1 << conflicts.saturating_sub(1).min(10);
    Duration::from_millis(MAX_CONFLICT_PAUSE_MS.min(doubled))
}

/// Ends what runs far beyond its timeout.
async fn guarded<T>(call: impl Future<Output = Ended<T>>, timeout: Duration) -> Ended<T> {
    let overrun = |_| Ended { unit: None, result: Err(CallError::Deadline(timeout)) };
    tokio::time::timeout(timeout + TIMEOUT_MARGIN, call).await.unwrap_or_else(overrun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_area_gives_its_jobs_more_time_than_the_operator_does() {
        let settings = config::Jobs { max_timeout_ms: 60_000, ..config::Jobs::default() };
        assert_eq!(timeout(5, &settings), Duration::from_millis(5));
        assert_eq!(timeout(u32::MAX, &settings), Duration::from_secs(60));
    }
}
