//! A loaded component, and the host's side of every call into it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::{Semaphore, watch};

use super::RuntimeState;
use super::bindings::Job;
use super::bindings::assurance::area::types;
use super::convert;
use super::exports::Exports;
use super::instance::{
    self, AreaLogContext, BatchLimitsCall, CallState, DescribeCall, FinishedCall, Invocation,
    JobBatch, JobBatchLimit,
};
use super::time_slice::{CallMeter, LongCallPlaces};
use super::trap;
use assurance_core::budgets::{BudgetExceeded, BudgetPermit};
use assurance_core::domain::area::{JobRun, Problem, Request, SuccessReply};
use assurance_core::domain::job::{EVENT_KIND, JobFailure, JobOutcome};
use assurance_core::domain::manifest::Manifest;
use assurance_core::recordings::Player;
use assurance_work::{
    AreaCode, CallError, CallOutcome, RunningCallSelector, TimeLimit, UnitOfWork,
};

/// Maximum number of jobs that run in one call, whatever the component returns.
const MAX_BATCH: u32 = 64;
/// Maximum wall time of `describe`; longer than its processor time, so that areas
/// load on a busy machine.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(30);

/// A component, compiled and linked, with the state that its calls share.
pub(super) struct Component {
    exports: Arc<Exports>,
    pub(super) shared: Arc<RuntimeState>,
    pub(super) area: Arc<AreaLogContext>,
    /// Permits for concurrent calls of the component.
    running: Semaphore,
    /// Number of `running` permits that one call takes: the instances of the
    /// pool that it occupies.
    places: u32,
    long_requests: LongCallPlaces,
    long_jobs: LongCallPlaces,
    stops: watch::Sender<CallStopSignal>,
    /// Maximum number of jobs of one call by kind of job; set when the
    /// component is described.
    batches: OnceLock<BTreeMap<String, u32>>,
}

/// Signal that ends running calls after an operator's action.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct CallStopSignal {
    /// Number of operators' actions that ended calls which block other writers; a
    /// running call compares it with the value at its start.
    pub(super) turns: u64,
    /// Calls that began before this time are ended; `None` if there are none to
    /// end.
    pub(super) begun_before: Option<Instant>,
}

impl Component {
    /// Creates the component; each call takes `places` of the area's instances
    /// in the pool.
    pub(super) fn new(
        exports: Exports,
        shared: Arc<RuntimeState>,
        digest: String,
        places: u32,
    ) -> Self {
        let config = &shared.settings.config.runtime;
        let (most, most_long) =
            (config.max_concurrent_per_area, config.max_long_calls_per_area as usize);
        Self {
            running: Semaphore::new(most as usize),
            places: places.min(most),
            long_requests: LongCallPlaces::for_requests(most_long),
            long_jobs: LongCallPlaces::for_jobs(most_long),
            area: Arc::new(AreaLogContext::new(digest, Arc::clone(&shared.area_logs))),
            exports: Arc::new(exports),
            batches: OnceLock::new(),
            stops: watch::Sender::new(CallStopSignal::default()),
            shared,
        }
    }

    /// Calls `describe` and parses the manifest.
    pub(super) async fn describe(&self) -> Result<Result<Manifest, String>, CallError> {
        let described = self.call(None, DescribeCall, DESCRIBE_TIMEOUT, Ok).await.result?;
        let manifest = match convert::manifest::manifest(described) {
            Ok(manifest) => manifest,
            Err(error) => return Ok(Err(error)),
        };
        self.area.set(&manifest.name);
        let batches = self.read_batches(&manifest).await?;
        Ok(batches.map(|batches| {
            let _ = self.batches.set(batches);
            manifest
        }))
    }

    /// Reads which kinds of jobs may run together. The manifest must declare them.
    async fn read_batches(
        &self,
        manifest: &Manifest,
    ) -> Result<Result<BTreeMap<String, u32>, String>, CallError> {
        if !self.exports.has_batches() {
            return Ok(Ok(BTreeMap::new()));
        }
        let kinds = self.call(None, BatchLimitsCall, DESCRIBE_TIMEOUT, Ok).await.result?;
        let declared =
            |kind: &str| kind == EVENT_KIND || manifest.jobs.iter().any(|job| job.name == kind);
        let batches = kinds.into_iter().map(|JobBatchLimit { kind, most }| {
            if declared(&kind) {
                Ok((kind, most.clamp(1, MAX_BATCH)))
            } else {
                Err(format!("`batches` names {kind:?}, which is no job kind of the manifest"))
            }
        });
        Ok(batches.collect())
    }

    /// Runs one call in an instance of its own and converts its result with
    /// `take`. A failure is logged here, once.
    async fn call<I: Invocation, T>(
        &self,
        unit: Option<UnitOfWork>,
        invocation: I,
        deadline: Duration,
        take: impl FnOnce(I::ReturnValue) -> Result<T, CallError> + Send,
    ) -> CallOutcome<T> {
        let Ok(_places) = self.running.try_acquire_many(self.places) else {
            return CallOutcome { unit, result: Err(CallError::Overloaded) };
        };
        let entry = match self.enter(unit.as_ref()) {
            Ok(entry) => entry,
            Err(refused) => return CallOutcome { unit, result: Err(refused.into()) },
        };
        let recorder = unit.as_ref().and_then(UnitOfWork::recorder).cloned();
        let workspace = unit.as_ref().map(|unit| unit.spec().call.workspace);
        let origin = unit.as_ref().map(|unit| unit.spec().call.origin.clone());
        let finished = self.run(unit, entry, invocation, deadline).await;
        let taken = finished.result.and_then(|answer| Ok(take(answer)?));
        let result = taken.map_err(|failure: trap::TrapReport| {
            failure.report(&self.area, origin.as_ref(), &finished.last_lines);
            if let (CallError::Turn { held, .. }, Some(workspace)) = (&failure.error, workspace) {
                self.shared.budgets.write_pauses().begin_pause(self.area.name(), workspace, *held);
            }
            if let Some(recorder) = recorder {
                recorder.record_stack(failure.backtrace());
            }
            failure.error
        });
        CallOutcome { unit: finished.unit, result }
    }

    async fn run<I: Invocation>(
        &self,
        unit: Option<UnitOfWork>,
        entry: Option<Arc<BudgetPermit>>,
        invocation: I,
        deadline: Duration,
    ) -> FinishedCall<I::ReturnValue> {
        let meter = self.meter::<I>(deadline);
        let (shared, area) = (self.shared.clone(), self.area.clone());
        let state = CallState::new(shared, area, unit, entry, meter.clone());
        self.run_in(state, &meter, invocation).await
    }

    pub(super) fn meter<I: Invocation>(&self, deadline: Duration) -> Arc<CallMeter> {
        let max_cpu = I::max_cpu(&self.shared, &self.area);
        let write_lock_limit = self.shared.limits_of(self.area.name()).turn;
        let deadline = TimeLimit { time: deadline, setting: I::DEADLINE_SETTING };
        Arc::new(CallMeter::new(&self.shared.settings, deadline, max_cpu, write_lock_limit))
    }

    /// Runs a call with the prepared call state.
    pub(super) async fn run_in<I: Invocation>(
        &self,
        state: CallState,
        meter: &Arc<CallMeter>,
        invocation: I,
    ) -> FinishedCall<I::ReturnValue> {
        let stops = self.stops.subscribe();
        let call = instance::run(self.exports.clone(), state, invocation, stops).boxed();
        let (executor, places) = match I::IS_JOB {
            true => (&self.shared.long_jobs, &self.long_jobs),
            false => (&self.shared.long_requests, &self.long_requests),
        };
        let ended = executor.run(call, meter.clone(), places).await;
        ended.unwrap_or_else(|lost| {
            let error = lost.into_error(meter.deadline());
            FinishedCall { unit: None, result: Err(error.into()), last_lines: Vec::new() }
        })
    }

    /// Charges the call to the budgets of its area and its workspace, or
    /// refuses it if a budget is used up. `describe` has no budget.
    fn enter(
        &self,
        unit: Option<&UnitOfWork>,
    ) -> Result<Option<Arc<BudgetPermit>>, BudgetExceeded> {
        let Some(unit) = unit else { return Ok(None) };
        let workspace = unit.spec().call.workspace;
        if unit.spec().writes || unit.spec().in_job {
            self.shared.budgets.write_pauses().check(self.area.name(), workspace)?;
        }
        self.shared.budgets.enter(self.area.name(), workspace).map(|entry| Some(Arc::new(entry)))
    }
}

impl AreaCode for Component {
    fn describe(&self) -> BoxFuture<'_, Result<Option<Manifest>, CallError>> {
        async move {
            let described = Component::describe(self).await?;
            described.map(Some).map_err(CallError::Contract)
        }
        .boxed()
    }

    fn handle<'a>(
        &'a self,
        unit: UnitOfWork,
        request: &'a Request,
        deadline: Duration,
    ) -> BoxFuture<'a, CallOutcome<Result<SuccessReply, Problem>>> {
        async move {
            let request = convert::call::request(request);
            self.begin_recording(&unit, &request, deadline);
            let max = self.shared.settings.max_reply_bytes();
            let take = |answer| convert::call::answer(answer, max);
            self.call(Some(unit), request, deadline, take).await
        }
        .boxed()
    }

    fn run<'a>(
        &'a self,
        unit: UnitOfWork,
        job: &'a JobRun,
        timeout: Duration,
    ) -> BoxFuture<'a, CallOutcome<Result<JobOutcome, JobFailure>>> {
        async move {
            let job = convert::call::job(job);
            self.begin_recording(&unit, &job, timeout);
            let max = self.shared.settings.max_reply_bytes();
            let take = |outcome| convert::call::outcome(outcome, max);
            self.call(Some(unit), job, timeout, take).await
        }
        .boxed()
    }

    fn max_batch(&self, kind: &str) -> u32 {
        self.batches.get().and_then(|kinds| kinds.get(kind)).copied().unwrap_or(1)
    }

    fn run_batch<'a>(
        &'a self,
        unit: UnitOfWork,
        jobs: &'a [JobRun],
        timeout: Duration,
    ) -> BoxFuture<'a, CallOutcome<Result<Vec<JobOutcome>, JobFailure>>> {
        async move {
            let max = self.shared.settings.max_reply_bytes();
            let together = JobBatch(jobs.iter().map(convert::call::job).collect());
            let take = |outcomes| convert::call::outcomes(outcomes, jobs.len(), max);
            self.call(Some(unit), together, timeout, take).await
        }
        .boxed()
    }

    fn end_calls(&self, which: RunningCallSelector) {
        self.stops.send_modify(|stops| match which {
            RunningCallSelector::HoldingWriteLock => stops.turns += 1,
            RunningCallSelector::BegunBefore(replaced) => stops.begun_before = Some(replaced),
        });
    }

    fn replay_request<'a>(
        &'a self,
        player: &'a Arc<Player>,
    ) -> BoxFuture<'a, Result<Result<SuccessReply, Problem>, CallError>> {
        async move {
            let answer = self.replay::<types::Request>(player).await?;
            convert::call::answer(answer, self.shared.settings.max_reply_bytes())
        }
        .boxed()
    }

    fn replay_run<'a>(
        &'a self,
        player: &'a Arc<Player>,
    ) -> BoxFuture<'a, Result<Result<JobOutcome, JobFailure>, CallError>> {
        async move {
            let outcome = self.replay::<Job>(player).await?;
            convert::call::outcome(outcome, self.shared.settings.max_reply_bytes())
        }
        .boxed()
    }
}
