//! Runs one job, or several of one kind together, under their leases, and commits the effects
//! together with the new states.

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
use assurance_core::domain::job::{JobFailure, JobOutcome, JobRunEnd, JobRunEndKind, LeasedJob};
use assurance_core::recordings::{CallMetadata, ExportKind, InputRedactionReason, Recorder};
use assurance_store as store;
use assurance_work::{
    CallError, CallOutcome, CommitAdditions, EgressResponseCache, TimeLimit, UnitOfWork,
    UnitOfWorkSpec, run_outcome,
};

/// Number of write conflicts after which a job run takes the workspace lock before it starts.
const CONFLICTS_BEFORE_LOCK: u32 = 2;
/// Time during which a job run is repeated after write conflicts. Afterwards the job is returned to
/// the queue.
const MAX_CONFLICT_TIME: Duration = Duration::from_secs(10);
/// Maximum wait after a write conflict of a job run, in milliseconds.
const MAX_CONFLICT_PAUSE_MS: u64 = 250;
/// Time beyond a job's timeout after which the host drops the run.
const TIMEOUT_MARGIN: Duration = Duration::from_secs(5);
/// Delay of a job whose run failed for a reason that is not in the job, such as an overloaded or
/// removed area, in milliseconds.
const DEFER_MS: i64 = 1_000;
/// Wait between two attempts to store a job's end.
const PAUSE: Duration = Duration::from_secs(1);

/// New states of the jobs that ran in one step, in their order; `None` if the lease of the only job
/// was lost.
type StepJobEnds = Option<Vec<JobRunEndKind>>;

/// Result of one attempt of a job step: its jobs' new states, or `LostRace` for a write conflict,
/// after which it is tried again.
enum RunAttemptOutcome {
    Ended(StepJobEnds),
    LostRace,
}

/// Returns the delay of a job, in milliseconds, if its run failed with an error that neither the
/// area nor the job caused, so that it does not count as an attempt; `None` for other errors. A
/// job beyond a budget waits until a retry can succeed, at most for its lane's longest backoff.
fn deferral_ms(error: &CallError, share: LaneConfig) -> Option<i64> {
    match error {
        CallError::Overloaded | CallError::Replaced => Some(DEFER_MS),
        CallError::OverBudget(over) => {
            let max_ms = i64::from(share.backoff_max_ms);
            let wait_s = i64::try_from(over.retry_after_s).unwrap_or(i64::MAX);
            Some(wait_s.saturating_mul(1_000).min(max_ms).max(DEFER_MS))
        }
        CallError::Store(error) => is_outage(error).then_some(DEFER_MS),
        _ => None,
    }
}

/// Returns whether the database refused a job run for a reason that is not in the run. A run that
/// exceeds the database's timeouts would exceed them again, and one whose commit panics would panic
/// again.
fn is_outage(error: &store::Error) -> bool {
    use store::Error::{Full, Unavailable};
    matches!(error, Unavailable(_) | Full(_)) && !error.is_timeout() && !error.is_crash()
}

/// Runs claimed jobs of one kind step by step, until they end or a lease expires. Several jobs run
/// together, in one step.
pub(super) async fn run(shared: &WorkerState, share: LaneConfig, mut jobs: Vec<LeasedJob>) {
    let Some(first) = jobs.first() else { return };
    let lane = first.job.lane;
    let span = tracing::info_span!(
        "job",
        "job.id" = %first.job.id,
        "job.kind" = first.job.kind,
        "job.attempt" = first.attempt,
        "job.together" = jobs.len(),
        "area.name" = first.job.area,
        "workspace.id" = %first.job.workspace,
    );
    let slice_ends = Instant::now() + Duration::from_millis(shared.deps.settings.slice_ms.into());
    async {
        loop {
            let begun = Instant::now();
            let ends = JobStep { shared, share, jobs: &jobs, slice_ends }.run_or_fault().await;
            let took = begun.elapsed() / u32::try_from(jobs.len()).unwrap_or(u32::MAX);
            for (at, job) in jobs.iter().enumerate() {
                report::ended(job, ends.as_ref().and_then(|ends| ends.get(at)), took);
            }
            let ends = ends.unwrap_or_default();
            if ends.iter().any(JobRunEndKind::is_requeued) {
                shared.deps.store.wake().wake(lane, shared.deps.clock.now());
            }
            match (jobs.as_mut_slice(), ends.into_iter().next()) {
                ([job], Some(JobRunEndKind::Continue { checkpoint, requeue: false })) => {
                    job.checkpoint = Some(checkpoint);
                }
                _ => return,
            }
        }
    }
    .instrument(span)
    .await;
}

/// One step of a job, or of several jobs together: one transaction.
struct JobStep<'a> {
    shared: &'a WorkerState,
    share: LaneConfig,
    /// Jobs that run in this step: at least one; several are of one kind and workspace.
    jobs: &'a [LeasedJob],
    slice_ends: Instant,
}

impl JobStep<'_> {
    /// Returns the first job of the step. What the jobs of a step have in common is read from it.
    fn first(&self) -> &LeasedJob {
        &self.jobs[0]
    }

    /// Runs the step. If the host panics, its jobs end as faulted; otherwise they would stay leased
    /// by this process.
    async fn run_or_fault(&self) -> StepJobEnds {
        if let Ok(ends) = AssertUnwindSafe(self.run()).catch_unwind().await {
            return ends;
        }
        let panicked = CallError::Host(anyhow::anyhow!("the host panicked while it ran the job"));
        self.settle(self.faulted(&panicked)).await
    }

    async fn run(&self) -> StepJobEnds {
        let (first, deps) = (self.first(), &self.shared.deps);
        // The others must run, too, if this one fails for the last time.
        if first.job.is_merged()
            && first.checkpoint.is_none()
            && first.attempt < first.job.max_attempts
            && let Err(error) = self.absorb().await
        {
            // The other jobs then run, too.
            tracing::warn!(%error, "cannot merge waiting events");
        }
        // All attempts use the same `JobRun`s, so that they create the same ids.
        let runs = self.job_runs();
        // Requests that one attempt has sent are not sent again by the next.
        let sent = Arc::default();
        let begun = Instant::now();
        let mut conflicts = 0;
        loop {
            // Each attempt needs the version that is live now: a former one is not ended any more.
            let Some(area) = (deps.areas.find)(&first.job.area, first.job.workspace) else {
                return self.settle(self.defer(DEFER_MS)).await;
            };
            let locked = conflicts >= CONFLICTS_BEFORE_LOCK;
            if let RunAttemptOutcome::Ended(ends) = self.attempt(&area, &runs, &sent, locked).await
            {
                return ends;
            }
            if locked && begun.elapsed() >= MAX_CONFLICT_TIME {
                tracing::warn!(
                    conflicts,
                    "job run stopped after repeated write conflicts; it is queued again"
                );
                return self.settle(self.defer(DEFER_MS)).await;
            }
            conflicts += 1;
            tokio::time::sleep(conflict_pause(conflicts)).await;
        }
    }

    async fn attempt(
        &self,
        area: &RunnableArea,
        runs: &[JobRun],
        sent: &Arc<EgressResponseCache>,
        locked: bool,
    ) -> RunAttemptOutcome {
        let [run] = runs else { return self.attempt_together(area, runs, sent, locked).await };
        let timeout = self.timeout();
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
        let ends = match (result, unit) {
            (Ok(Ok(outcome)), Some(unit)) => return self.keep(unit, vec![outcome]).await,
            (Ok(Ok(_)), None) => self.faulted(&CallError::Host(anyhow::anyhow!(
                "a run succeeded, but its unit of work was lost"
            ))),
            (Ok(Err(failure)), _) => {
                vec![verdict::dropped(self.first(), failure, self.circumstances())]
            }
            (Err(CallError::Store(error)), _) if error.is_write_conflict() => {
                return RunAttemptOutcome::LostRace;
            }
            (Err(error), _) => match deferral_ms(&error, self.share) {
                Some(wait_ms) => self.defer(wait_ms),
                None => self.faulted(&error),
            },
        };
        RunAttemptOutcome::Ended(self.settle(ends).await)
    }

    /// Runs the step's jobs in one call. If the area or a job makes that fail, each runs by itself
    /// later, and the failure is that job's alone.
    async fn attempt_together(
        &self,
        area: &RunnableArea,
        runs: &[JobRun],
        sent: &Arc<EgressResponseCache>,
        locked: bool,
    ) -> RunAttemptOutcome {
        let Some(run) = runs.first() else { return RunAttemptOutcome::Ended(None) };
        let max = Duration::from_millis(self.shared.deps.settings.max_timeout_ms.into());
        let timeout = max.min(self.timeout() * u32::try_from(runs.len()).unwrap_or(u32::MAX));
        let unit = self.unit(area, run, locked).with_egress_log(sent);
        let outcome = guarded(area.code.run_batch(unit, runs, timeout), timeout).await;
        let ends = match (outcome.result, outcome.unit) {
            (Ok(Ok(outcomes)), Some(unit)) => {
                // Failures are observed when the jobs run by themselves.
                if let Some(observer) = &area.observer {
                    observer(false);
                }
                return self.keep(unit, outcomes).await;
            }
            (Ok(Ok(_)), None) => self.apart("the unit of work was lost"),
            (Ok(Err(JobFailure::Retry(why) | JobFailure::Fail(why))), _) => self.apart(&why),
            (Err(CallError::Store(error)), _) if error.is_write_conflict() => {
                return RunAttemptOutcome::LostRace;
            }
            // A batch may need more of the area's memory than each of its jobs.
            (Err(error @ CallError::Overloaded), _) => self.apart(&error.to_string()),
            (Err(error), _) => match deferral_ms(&error, self.share) {
                Some(wait_ms) => self.defer(wait_ms),
                None => self.apart(&error.to_string()),
            },
        };
        RunAttemptOutcome::Ended(self.settle(ends).await)
    }

    /// Deletes the waiting jobs of merged events that this run delivers, too.
    async fn absorb(&self) -> Result<(), store::Error> {
        let (deps, job) = (&self.shared.deps, self.first());
        deps.store.write(async |c| store::jobs::absorb(c, job, deps.clock.now()).await).await?;
        Ok(())
    }

    /// Commits the effects of the step together with the jobs' new states.
    async fn keep(&self, unit: UnitOfWork, outcomes: Vec<JobOutcome>) -> RunAttemptOutcome {
        let together = self.jobs.len() > 1;
        let ends: Vec<JobRunEndKind> = std::iter::zip(self.jobs, outcomes)
            .map(|(job, outcome)| {
                let with = self.circumstances();
                verdict::kept(
                    job,
                    outcome,
                    VerdictInput { requeue: together || with.requeue, ..with },
                )
            })
            .collect();
        let mut stored = self.job_ends(&ends);
        if let ([_], [end]) = (self.jobs, stored.as_mut_slice()) {
            end.progress = unit.progress();
        }
        let options = CommitAdditions { reply: None, jobs: stored };
        let ends = match unit.commit(options).await {
            Ok(()) => return RunAttemptOutcome::Ended(Some(ends)),
            Err(store::Error::LeaseLost) if !together => return RunAttemptOutcome::Ended(None),
            Err(error) if error.is_write_conflict() => return RunAttemptOutcome::LostRace,
            Err(error) if is_outage(&error) => self.defer(DEFER_MS),
            Err(error) if together => self.apart(&error.to_string()),
            Err(error) => self.faulted(&CallError::Store(error)),
        };
        RunAttemptOutcome::Ended(self.settle(ends).await)
    }

    /// Stores the jobs' new states without effects of the step. Retries until the database accepts
    /// them, because the jobs would stay leased otherwise.
    async fn settle(&self, ends: Vec<JobRunEndKind>) -> StepJobEnds {
        for end in self.job_ends(&ends) {
            loop {
                match self.write(&end).await {
                    Ok(()) => break,
                    Err(store::Error::LeaseLost) if self.jobs.len() == 1 => return None,
                    // Those that still had it are stored.
                    Err(store::Error::LeaseLost) => break,
                    Err(error) => {
                        tracing::warn!(%error, "cannot store the end of a job run; retrying");
                    }
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        Some(ends)
    }

    async fn write(&self, end: &JobRunEnd) -> Result<(), store::Error> {
        let deps = &self.shared.deps;
        deps.store.write(async |c| store::jobs::end(c, end, deps.clock.now()).await).await
    }

    /// Returns the records that store the jobs' new states: one for all jobs with the same lease
    /// and the same new state.
    fn job_ends(&self, ends: &[JobRunEndKind]) -> Vec<JobRunEnd> {
        let mut stored: Vec<JobRunEnd> = Vec::new();
        for (LeasedJob { job, lease, .. }, how) in std::iter::zip(self.jobs, ends) {
            match stored.iter_mut().find(|end| end.lease == *lease && end.how == *how) {
                Some(end) => end.jobs.push(job.id),
                None => stored.push(JobRunEnd {
                    workspace: job.workspace,
                    jobs: vec![job.id],
                    lease: *lease,
                    how: how.clone(),
                    progress: None,
                }),
            }
        }
        stored
    }

    /// Returns the jobs to the queue after they failed together, to be run one by one.
    fn apart(&self, why: &str) -> Vec<JobRunEndKind> {
        let jobs = self.jobs.len();
        tracing::warn!(why, jobs, "jobs failed together; each will run by itself");
        self.shared.batches.pause(self.first());
        vec![JobRunEndKind::Release { at: self.shared.deps.clock.now() }; jobs]
    }

    fn job_runs(&self) -> Vec<JobRun> {
        let first = &self.first().job;
        let call = CallContext {
            workspace: first.workspace,
            now: self.shared.deps.clock.now(),
            seed: rand::rng().random(),
            origin: CallOrigin::Job(first.id),
        };
        let run = |leased: &LeasedJob| JobRun {
            call: call.clone(),
            id: leased.job.id,
            kind: leased.job.kind.clone(),
            payload: leased.job.payload.clone(),
            attempt: leased.attempt,
            checkpoint: leased.checkpoint.clone(),
        };
        self.jobs.iter().map(run).collect()
    }

    fn timeout(&self) -> Duration {
        timeout(self.first().job.timeout_ms, &self.shared.deps.settings)
    }

    fn unit(&self, area: &RunnableArea, run: &JobRun, locked: bool) -> UnitOfWork {
        let deps = &self.shared.deps;
        let spec = UnitOfWorkSpec {
            writes: true,
            in_job: true,
            locked,
            isolation_profile: Some(area.scope.isolation_profiles.of(&run.kind)),
            ..UnitOfWorkSpec::of(&area.scope, run.call.clone())
        };
        UnitOfWork::new(deps.store.clone(), Arc::clone(&deps.keys), spec)
    }

    fn recorder(&self, area: &RunnableArea, run: &JobRun) -> Option<Arc<Recorder>> {
        let recordings = &self.shared.deps.recordings;
        if !recordings.keeps_faults() {
            return None;
        }
        let about = CallMetadata {
            id: format!("job-{}-{}", run.id, run.attempt),
            at: run.call.now,
            area: area.scope.area.clone(),
            version: area.scope.version.clone(),
            digest: area.scope.digest.clone(),
            export: ExportKind::Run,
            operation: run.kind.clone(),
            checked: false,
        };
        Some(recordings.begin(
            about,
            area.scope.can_obtain_secrets.then_some(InputRedactionReason::SecretInJob),
        ))
    }

    fn circumstances(&self) -> VerdictInput {
        let jitter = rand::rng().random();
        VerdictInput {
            now: self.shared.deps.clock.now(),
            backoff_ms: backoff::delay_ms(self.share, self.first().attempt, jitter),
            requeue: self.shared.stop.is_cancelled() || Instant::now() >= self.slice_ends,
        }
    }

    /// Returns the jobs' new states after a faulted run. The details are only logged, because
    /// workspace members see a job's error.
    fn faulted(&self, error: &CallError) -> Vec<JobRunEndKind> {
        tracing::warn!(error = %error, "job run failed with a fault");
        let text = verdict::public_text(error);
        self.jobs.iter().map(|job| verdict::faulted(job, text, self.circumstances())).collect()
    }

    /// Returns the jobs to the queue for this time, without counting the attempt.
    fn defer(&self, wait_ms: i64) -> Vec<JobRunEndKind> {
        let at = self.shared.deps.clock.now().plus_ms(wait_ms);
        vec![JobRunEndKind::Release { at }; self.jobs.len()]
    }
}

/// Returns the timeout of a job run: the area's, limited by the operator's maximum. It is limited
/// here and not when the job is enqueued, so that a lower maximum applies to queued jobs, too.
fn timeout(wished_ms: u32, settings: &config::JobsConfig) -> Duration {
    Duration::from_millis(wished_ms.min(settings.max_timeout_ms).into())
}

/// Returns the wait before a job run is repeated after the nth write conflict.
fn conflict_pause(conflicts: u32) -> Duration {
    let doubled = 1 << conflicts.saturating_sub(1).min(10);
    Duration::from_millis(MAX_CONFLICT_PAUSE_MS.min(doubled))
}

/// Cancels a job run that exceeds its timeout by [`TIMEOUT_MARGIN`].
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
    use assurance_core::budgets::{BudgetExceeded, BudgetOwnerKind, Resource};

    #[test]
    fn no_area_gives_its_jobs_more_time_than_the_operator_does() {
        let settings =
            config::JobsConfig { max_timeout_ms: 60_000, ..config::JobsConfig::default() };
        assert_eq!(timeout(5, &settings), Duration::from_millis(5));
        assert_eq!(timeout(u32::MAX, &settings), Duration::from_secs(60));
    }

    #[test]
    fn a_refused_job_waits_as_long_as_refused_but_no_longer_than_a_backoff() {
        let share = config::LanesConfig::default().assistant;
        let waits = [0, 30, 60, 121, u64::MAX].map(|retry_after_s| {
            let (whose, name) = (BudgetOwnerKind::Workspace, "acme".to_owned());
            let over = BudgetExceeded { whose, name, resource: Resource::Cpu, retry_after_s };
            deferral_ms(&CallError::OverBudget(over), share)
        });
        assert_eq!(waits, [1_000, 30_000, 60_000, 60_000, 60_000].map(Some));
        assert_eq!(deferral_ms(&CallError::Replaced, share), Some(DEFER_MS));
        assert_eq!(deferral_ms(&CallError::Trap("as asked".into()), share), None);
    }
}
