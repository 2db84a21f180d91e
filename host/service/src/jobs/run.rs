//! Runs one job under its lease and commits its effects together with its new state.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use rand::RngExt as _;
use tracing::Instrument as _;

use super::verdict::{self, VerdictInput};
use super::{RunnableArea, WorkerState, backoff, report};
use assurance_core::config::{self, LaneConfig};
use assurance_core::domain::area::{CallContext, CallOrigin, JobRun};
use assurance_core::domain::job::{JobEnd, JobEndKind, JobFailure, JobOutcome, LeasedJob};
use assurance_core::recordings::{RecordedCall, RecordedExport, Recorder, WithholdReason};
use assurance_store as store;
use assurance_work::{
    CallError, CallOutcome, CommitOptions, EgressLog, TimeLimit, UnitOfWork, UnitSpec, run_outcome,
};

/// Number of write conflicts after which a run takes the workspace lock before
/// it starts.
const CONFLICTS_BEFORE_LOCK: u32 = 2;
/// Time during which a run is repeated after write conflicts. Afterwards the job is returned to the
/// queue.
const MAX_CONFLICT_TIME: Duration = Duration::from_secs(10);
/// Maximum wait after a write conflict.
const MAX_CONFLICT_PAUSE_MS: u64 = 250;
/// Time beyond a job's timeout after which the host drops the run.
const TIMEOUT_MARGIN: Duration = Duration::from_secs(5);
/// Delay of a job whose area was removed or is overloaded, in milliseconds.
const DEFER_MS: i64 = 1_000;
/// Wait between two attempts to store a job's end.
const PAUSE: Duration = Duration::from_secs(1);

/// Result of one attempt. `Ended(None)` means that the lease was lost; `LostRace` means a write
/// conflict.
enum RunAttempt {
    Ended(Option<JobEndKind>),
    LostRace,
}

/// Whether the run does not count as an attempt, because neither the area nor the job caused the
/// failure.
fn is_temporary(error: &CallError) -> bool {
    use store::Error::{Full, Unavailable};
    matches!(
        error,
        CallError::Overloaded
            | CallError::Replaced
            | CallError::OverBudget(_)
            | CallError::Store(Unavailable(_) | Full(_))
    )
}

/// Runs a claimed job step by step, until it ends or its lease expires.
pub(super) async fn run(shared: &WorkerState, share: LaneConfig, mut leased: LeasedJob) {
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
            let step = JobStep { shared, share, leased: &leased, slice_ends };
            let how = step.run_or_fault().await;
            report::ended(&leased, how.as_ref(), begun.elapsed());
            match how {
                Some(JobEndKind::Continue { checkpoint, requeue: false }) => {
                    leased.checkpoint = Some(checkpoint);
                }
                Some(how) if how.is_requeued() => {
                    return shared.deps.store.wake().wake(leased.job.lane);
                }
                _ => return,
            }
        }
    }
    .instrument(span)
    .await;
}

/// One transaction of a job.
struct JobStep<'a> {
    shared: &'a WorkerState,
    share: LaneConfig,
    leased: &'a LeasedJob,
    slice_ends: Instant,
}

impl JobStep<'_> {
    /// Runs the step. A panic of the host ends the job as faulted; otherwise the job would stay
    /// leased by this process.
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
            return self.settle(self.defer()).await;
        };
        if self.leased.is_merged()
            && self.leased.checkpoint.is_none()
            && let Err(error) = self.absorb().await
        {
            // The other jobs then run, too.
            tracing::warn!(%error, "cannot merge waiting events");
        }
        // All attempts use the same `JobRun`, so that they create the same ids.
        let run = self.job_run();
        // Requests that one attempt has sent are not sent again by the next.
        let sent = Arc::default();
        let begun = Instant::now();
        let mut conflicts = 0;
        loop {
            let locked = conflicts >= CONFLICTS_BEFORE_LOCK;
            if let RunAttempt::Ended(how) = self.attempt(&area, &run, &sent, locked).await {
                return how;
            }
            if locked && begun.elapsed() >= MAX_CONFLICT_TIME {
                tracing::warn!(
                    conflicts,
                    "job run stopped after repeated write conflicts; it is queued again"
                );
                return self.settle(self.defer()).await;
            }
            conflicts += 1;
            tokio::time::sleep(conflict_pause(conflicts)).await;
        }
    }

    async fn attempt(
        &self,
        area: &RunnableArea,
        run: &JobRun,
        sent: &Arc<EgressLog>,
        locked: bool,
    ) -> RunAttempt {
        let timeout = timeout(self.leased.job.timeout_ms, &self.shared.deps.settings);
        let recorder = self.recorder(area, run);
        let unit =
            self.unit(area, run, locked).with_egress_log(sent).with_recorder(recorder.as_ref());
        let CallOutcome { unit, result } =
            guarded(area.code.run(unit, run, timeout), timeout).await;
        if let Some(recorder) = recorder {
            recorder.record_outcome(run_outcome(&result));
            self.shared.deps.recordings.keep(&recorder, false);
        }
        if let Some(observer) = &area.observer {
            observer(matches!(&result, Err(error) if error.is_areas_fault()));
        }
        let how = match (result, unit) {
            (Ok(Ok(outcome)), Some(unit)) => return self.keep(unit, outcome).await,
            (Ok(Ok(_)), None) => self.faulted(&CallError::Host(anyhow::anyhow!(
                "a run succeeded, but its unit of work was lost"
            ))),
            (Ok(Err(failure)), _) => self.dropped(failure),
            (Err(CallError::Store(error)), _) if error.is_write_conflict() => {
                return RunAttempt::LostRace;
            }
            (Err(error), _) if is_temporary(&error) => self.defer(),
            (Err(error), _) => self.faulted(&error),
        };
        RunAttempt::Ended(self.settle(how).await)
    }

    /// Removes the waiting jobs that this run of merged events stands for.
    async fn absorb(&self) -> Result<(), store::Error> {
        let deps = &self.shared.deps;
        let mut connection = deps.store.writer().await?;
        store::jobs::absorb(&mut connection, &self.leased.job, deps.clock.now()).await?;
        connection.release();
        Ok(())
    }

    /// Commits the effects of the run together with the job's new state.
    async fn keep(&self, unit: UnitOfWork, outcome: JobOutcome) -> RunAttempt {
        let how = verdict::kept(self.leased, outcome, self.circumstances());
        let end = CommitOptions { reply: None, job: Some(self.end(how.clone())) };
        let how = match unit.commit(end).await {
            Ok(()) => return RunAttempt::Ended(Some(how)),
            Err(store::Error::LeaseLost) => return RunAttempt::Ended(None),
            Err(error) if error.is_write_conflict() => return RunAttempt::LostRace,
            Err(store::Error::Unavailable(_) | store::Error::Full(_)) => self.defer(),
            Err(error) => self.faulted(&CallError::Store(error)),
        };
        RunAttempt::Ended(self.settle(how).await)
    }

    /// Stores the job's new state without effects of the run. Retries until the database accepts
    /// it, because the job would stay leased otherwise.
    async fn settle(&self, how: JobEndKind) -> Option<JobEndKind> {
        let end = self.end(how);
        loop {
            match self.write(&end).await {
                Ok(()) => return Some(end.how),
                Err(store::Error::LeaseLost) => return None,
                Err(error) => tracing::warn!(%error, "cannot store the end of a job run; retrying"),
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
            call: CallContext {
                workspace: job.workspace,
                now: self.shared.deps.clock.now(),
                seed: rand::rng().random(),
                origin: CallOrigin::Job(job.id),
            },
            id: job.id,
            kind: job.kind.clone(),
            payload: job.payload.clone(),
            attempt: self.leased.attempt,
            checkpoint: self.leased.checkpoint.clone(),
        }
    }

    fn unit(&self, area: &RunnableArea, run: &JobRun, locked: bool) -> UnitOfWork {
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
            access_pattern: Some(area.scope.access_patterns.of(&run.kind)),
        };
        UnitOfWork::new(deps.store.clone(), Arc::clone(&deps.keys), spec)
    }

    fn recorder(&self, area: &RunnableArea, run: &JobRun) -> Option<Arc<Recorder>> {
        let recordings = &self.shared.deps.recordings;
        if !recordings.keeps_faults() {
            return None;
        }
        let about = RecordedCall {
            id: format!("job-{}-{}", run.id, run.attempt),
            at: run.call.now,
            area: area.scope.area.clone(),
            version: area.scope.version.clone(),
            digest: area.scope.digest.clone(),
            export: RecordedExport::Run,
            operation: run.kind.clone(),
            checked: false,
        };
        Some(
            recordings
                .begin(about, area.scope.can_obtain_secrets.then_some(WithholdReason::SecretInJob)),
        )
    }

    fn circumstances(&self) -> VerdictInput {
        let jitter = rand::rng().random();
        VerdictInput {
            now: self.shared.deps.clock.now(),
            backoff_ms: backoff::delay_ms(self.share, self.leased.attempt, jitter),
            requeue: self.shared.stop.is_cancelled() || Instant::now() >= self.slice_ends,
        }
    }

    fn dropped(&self, failure: JobFailure) -> JobEndKind {
        verdict::dropped(self.leased, failure, self.circumstances())
    }

    /// Returns the end of a faulted run. The details are only logged, because workspace members see
    /// the job's error.
    fn faulted(&self, error: &CallError) -> JobEndKind {
        tracing::warn!(error = %error, "job run failed with a fault");
        verdict::faulted(self.leased, verdict::public_text(error), self.circumstances())
    }

    /// Returns the job to the queue without counting the attempt.
    fn defer(&self) -> JobEndKind {
        JobEndKind::Release { at: self.shared.deps.clock.now().plus_ms(DEFER_MS) }
    }
}

/// Returns the area's timeout, limited by the operator's maximum. It is limited here and not when
/// the job is enqueued, so that a lower maximum applies to queued jobs, too.
fn timeout(wished_ms: u32, settings: &config::JobsConfig) -> Duration {
    Duration::from_millis(wished_ms.min(settings.max_timeout_ms).into())
}

/// Returns the wait after the nth write conflict.
fn conflict_pause(conflicts: u32) -> Duration {
    let doubled = 1 << conflicts.saturating_sub(1).min(10);
    Duration::from_millis(MAX_CONFLICT_PAUSE_MS.min(doubled))
}

/// Cancels a run that exceeds its timeout by [`TIMEOUT_MARGIN`].
async fn guarded<T>(
    call: impl Future<Output = CallOutcome<T>>,
    timeout: Duration,
) -> CallOutcome<T> {
    let limit = TimeLimit { time: timeout, setting: "`timeout_ms` of its job kind" };
    let overrun = |_| CallOutcome { unit: None, result: Err(CallError::Deadline(limit)) };
    tokio::time::timeout(timeout + TIMEOUT_MARGIN, call).await.unwrap_or_else(overrun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_area_gives_its_jobs_more_time_than_the_operator_does() {
        let settings =
            config::JobsConfig { max_timeout_ms: 60_000, ..config::JobsConfig::default() };
        assert_eq!(timeout(5, &settings), Duration::from_millis(5));
        assert_eq!(timeout(u32::MAX, &settings), Duration::from_secs(60));
    }
}
