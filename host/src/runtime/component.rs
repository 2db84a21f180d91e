//! A loaded component: the host's side of every call into it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::{Semaphore, watch};

use super::Shared;
use super::bindings::Job;
use super::bindings::assurance::area::types;
use super::convert;
use super::exports::Exports;
use super::instance::{self, AreaName, CallState, Describe, Finished, Invocation};
use super::overstay::Meter;
use super::trap;
use crate::budgets::{Entry, Refused};
use crate::domain::area::{JobRun, Problem, Reply, Request};
use crate::domain::job::{Failure, Outcome};
use crate::domain::manifest::Manifest;
use crate::recordings::Player;
use crate::work::{AreaCode, CallError, EndCalls, Ended, UnitOfWork};

/// A component, compiled and linked.
pub(super) struct Component {
    exports: Arc<Exports>,
    shared: Arc<Shared>,
    area: Arc<AreaName>,
    /// Calls at a time, and those of them that run for long.
    running: Semaphore,
    overstaying: Arc<Semaphore>,
    stops: watch::Sender<Stops>,
}

/// Which of the running calls are ended.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Stops {
    /// How many times those were ended that keep others from writing.
    pub(super) turns: u64,
    /// Those that began before this are ended.
    pub(super) begun_before: Option<Instant>,
}

impl Component {
    pub(super) fn new(exports: Exports, shared: Arc<Shared>, digest: String) -> Self {
        Self {
            running: Semaphore::new(shared.settings.max_concurrent_per_area),
            overstaying: Arc::new(Semaphore::new(shared.settings.max_overstaying_per_area)),
            area: Arc::new(AreaName::new(digest, Arc::clone(&shared.journals))),
            exports: Arc::new(exports),
            stops: watch::Sender::new(Stops::default()),
            shared,
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn area(&self) -> &Arc<AreaName> {
        &self.area
    }

    /// Asks it what it is. From then on it has a name.
    pub(super) async fn describe(&self) -> Result<Result<Manifest, String>, CallError> {
        let timeout = self.shared.settings.describe_timeout();
        let described = self.call(None, Describe, timeout, Ok).await.result?;
        let manifest = convert::manifest::manifest(described);
        if let Ok(manifest) = &manifest {
            self.area.set(&manifest.name);
        }
        Ok(manifest)
    }

    /// One call, in an instance of its own, whose answer is then taken as what
    /// the host makes of it. A failure is told to the operator here, once.
    async fn call<I: Invocation, T>(
        &self,
        unit: Option<UnitOfWork>,
        invocation: I,
        deadline: Duration,
        take: impl FnOnce(I::Answer) -> Result<T, CallError> + Send,
    ) -> Ended<T> {
        let Ok(_place) = self.running.try_acquire() else {
            return Ended { unit, result: Err(CallError::Overloaded) };
        };
        let entry = match self.enter(unit.as_ref()) {
            Ok(entry) => entry,
            Err(refused) => return Ended { unit, result: Err(refused.into()) },
        };
        let recorder = unit.as_ref().and_then(UnitOfWork::recorder).cloned();
        let workspace = unit.as_ref().map(|unit| unit.spec().call.workspace);
        let origin = unit.as_ref().map(|unit| unit.spec().call.origin.clone());
        let finished = self.run(unit, entry, invocation, deadline).await;
        let taken = finished.result.and_then(|answer| Ok(take(answer)?));
        let result = taken.map_err(|failure: trap::Failure| {
            failure.report(&self.area, origin.as_ref(), &finished.last_lines);
            if let (CallError::Turn { cpu, .. }, Some(workspace)) = (&failure.error, workspace) {
                self.shared.budgets.turns().exceeded(self.area.name(), workspace, *cpu);
            }
            if let Some(recorder) = recorder {
                recorder.failed_at(failure.backtrace());
            }
            failure.error
        });
        Ended { unit: finished.unit, result }
    }

    async fn run<I: Invocation>(
        &self,
        unit: Option<UnitOfWork>,
        entry: Option<Arc<Entry>>,
        invocation: I,
        deadline: Duration,
    ) -> Finished<I::Answer> {
        let meter = self.meter::<I>(deadline);
        let (shared, area) = (self.shared.clone(), self.area.clone());
        let mut state = CallState::new(shared, area, unit, entry, meter.clone());
        state.set_stops(self.stops.subscribe());
        self.run_in(state, &meter, invocation).await
    }

    pub(super) fn meter<I: Invocation>(&self, deadline: Duration) -> Arc<Meter> {
        let max_cpu = I::max_cpu(&self.shared, &self.area);
        let max_turn = self.shared.limits_of(self.area.name()).turn;
        Arc::new(Meter::new(&self.shared.settings, deadline, max_cpu, max_turn))
    }

    /// Runs a call as it has been prepared.
    pub(super) async fn run_in<I: Invocation>(
        &self,
        state: CallState,
        meter: &Arc<Meter>,
        invocation: I,
    ) -> Finished<I::Answer> {
        let call = instance::run(self.exports.clone(), state, invocation).boxed();
        let ended = I::long(&self.shared).run(call, meter.clone(), &self.overstaying).await;
        ended.unwrap_or_else(|lost| Finished::not_begun(None, lost.into_error(meter.deadline())))
    }

    /// Into the accounts of its area and its workspace; `describe` is for
    /// nobody.
    fn enter(&self, unit: Option<&UnitOfWork>) -> Result<Option<Arc<Entry>>, Refused> {
        let Some(unit) = unit else { return Ok(None) };
        let workspace = unit.spec().call.workspace;
        if unit.spec().writes || unit.spec().in_job {
            self.shared.budgets.turns().check(self.area.name(), workspace)?;
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
    ) -> BoxFuture<'a, Ended<Result<Reply, Problem>>> {
        async move {
            let request = convert::call::request(request);
            self.begin_recording(&unit, &request, deadline);
            let max = self.shared.settings.max_reply_bytes;
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
    ) -> BoxFuture<'a, Ended<Result<Outcome, Failure>>> {
        async move {
            let job = convert::call::job(job);
            self.begin_recording(&unit, &job, timeout);
            let max = self.shared.settings.max_reply_bytes;
            let take = |outcome| convert::call::outcome(outcome, max);
            self.call(Some(unit), job, timeout, take).await
        }
        .boxed()
    }

    fn end_calls(&self, which: EndCalls) {
        self.stops.send_modify(|stops| match which {
            EndCalls::HoldingTheTurn => stops.turns += 1,
            EndCalls::BegunBefore(replaced) => stops.begun_before = Some(replaced),
        });
    }

    fn replay_request<'a>(
        &'a self,
        player: &'a Arc<Player>,
    ) -> BoxFuture<'a, Result<Result<Reply, Problem>, CallError>> {
        async move {
            let answer = self.replay::<types::Request>(player).await?;
            convert::call::answer(answer, self.shared.settings.max_reply_bytes)
        }
        .boxed()
    }

    fn replay_run<'a>(
        &'a self,
        player: &'a Arc<Player>,
    ) -> BoxFuture<'a, Result<Result<Outcome, Failure>, CallError>> {
        async move {
            let outcome = self.replay::<Job>(player).await?;
            convert::call::outcome(outcome, self.shared.settings.max_reply_bytes)
        }
        .boxed()
    }
}
