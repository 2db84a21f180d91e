//! One call: its store, its instance and the state of its host functions. All
//! of it is dropped at the end of the call; an instance never serves two calls.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use wasmtime::component::{ComponentType, Lift};
use wasmtime::{ResourceLimiter, Store};

use super::RuntimeState;
use super::bindings::assurance::area::{manifest, types};
use super::bindings::{Job, JobError, Outcome};
use super::component::CallStopSignal;
use super::exports::{AreaExport, Exports};
use super::limits::InstanceMemory;
use super::log::GuestLog;
use super::time_slice::CallMeter;
use super::trap::{FatalHostCallError, TrapReport, turn_exceeded};
use super::wasi::{EmptyWasi, wasi_seed};
use assurance_core::area_log::{AreaLog, AreaLogs};
use assurance_core::budgets::{BudgetPermit, Usage};
use assurance_core::domain::manifest::Capability;
use assurance_core::domain::time::Timestamp;
use assurance_core::recordings::{Player, Recorder};
use assurance_work::{CallError, TimeLimit, UnitOfWork, WriteLockState};

/// Number of bytes up to which a host function computes on the thread that
/// serves the call; takes some milliseconds.
const MAX_INLINE_BYTES: usize = 1 << 20;
/// Maximum bytes that a guest may pass in one host call: the largest blob plus
/// overhead.
const MAX_HOST_CALL_BYTES: usize = 34 << 20;
/// Maximum processor time of `describe`.
const DESCRIBE_CPU: Duration = Duration::from_secs(1);

/// Name and digest of the area whose code runs, for logs.
pub(super) struct AreaLogContext {
    name: OnceLock<String>,
    digest: String,
    area_logs: Arc<AreaLogs>,
    /// Log of the area, set at the first log line or fault.
    area_log: OnceLock<Arc<AreaLog>>,
}

impl AreaLogContext {
    /// Creates the context of a component, of which only the digest is known before `describe`.
    pub(super) fn new(digest: String, area_logs: Arc<AreaLogs>) -> Self {
        Self { name: OnceLock::new(), digest, area_logs, area_log: OnceLock::new() }
    }

    pub(super) fn set(&self, name: &str) {
        let _ = self.name.set(name.to_owned());
    }

    pub(super) fn name(&self) -> &str {
        self.name.get().map_or("(not described)", String::as_str)
    }

    /// Returns the area's log; `None` before `describe`.
    pub(super) fn area_log(&self) -> Option<&AreaLog> {
        let name = self.name.get()?;
        Some(self.area_log.get_or_init(|| self.area_logs.of(name)))
    }

    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    pub(super) fn short_digest(&self) -> &str {
        self.digest.get(..12).unwrap_or(&self.digest)
    }
}

/// State of one guest call, which its host functions use.
pub(super) struct CallState {
    pub(super) shared: Arc<RuntimeState>,
    pub(super) area: Arc<AreaLogContext>,
    /// Unit of work of the call; `None` in `describe`, which has no capabilities, and in a replay.
    unit: Option<UnitOfWork>,
    player: Option<Arc<Player>>,
    /// Budget that the call is charged to; `None` in `describe` and after the
    /// charge.
    entry: Option<Arc<BudgetPermit>>,
    meter: Arc<CallMeter>,
    host_calls: u32,
    max_host_calls: u32,
    memory: InstanceMemory,
    log: GuestLog,
    world: Option<Box<EmptyWasi>>,
}

impl CallState {
    pub(super) fn new(
        shared: Arc<RuntimeState>,
        area: Arc<AreaLogContext>,
        unit: Option<UnitOfWork>,
        entry: Option<Arc<BudgetPermit>>,
        meter: Arc<CallMeter>,
    ) -> Self {
        let limits = shared.limits_of(area.name());
        let origin = unit.as_ref().map(|unit| unit.spec().call.origin.clone());
        let max_lines = shared.settings.config.runtime.max_log_lines;
        Self {
            unit,
            player: None,
            host_calls: 0,
            max_host_calls: limits.host_calls,
            memory: InstanceMemory::new(shared.memory.clone(), limits.memory_bytes, entry.clone()),
            entry,
            meter,
            log: GuestLog::new(Arc::clone(&area), origin, max_lines),
            world: None,
            area,
            shared,
        }
    }

    /// Returns whether the call blocks other writers.
    fn holds_write_lock(&self) -> bool {
        self.unit.as_ref().is_some_and(|unit| unit.turn().is_held())
    }

    /// Creates the call state for the replay of a recorded call.
    pub(super) fn replay(
        shared: Arc<RuntimeState>,
        area: Arc<AreaLogContext>,
        player: Arc<Player>,
        meter: Arc<CallMeter>,
    ) -> Self {
        let mut state = Self::new(shared, area, None, None, meter);
        state.player = Some(player);
        state
    }

    /// Counts a host call and returns the unit of work. Must be called first by every host function
    /// that uses the unit of work. Fails in `describe`, which may not call any.
    pub(super) fn enter(&mut self, capability: Capability) -> wasmtime::Result<&mut UnitOfWork> {
        self.count(capability)?;
        self.unit(capability)
    }

    /// Returns the unit of work, for a host call that was counted before. Fails in `describe`.
    pub(super) fn unit(&mut self, capability: Capability) -> wasmtime::Result<&mut UnitOfWork> {
        self.unit.as_mut().ok_or_else(|| FatalHostCallError::InDescribe(capability).into())
    }

    /// Counts a host call. Must be called first by host functions that do not use the unit of work.
    /// Fails in `describe`.
    pub(super) fn count(&mut self, capability: Capability) -> wasmtime::Result<()> {
        self.count_in_describe()?;
        if self.unit.is_none() && self.player.is_none() {
            return Err(FatalHostCallError::InDescribe(capability).into());
        }
        Ok(())
    }

    /// Counts a host call. Must be called first by host functions that `describe` may call.
    pub(super) fn count_in_describe(&mut self) -> wasmtime::Result<()> {
        let max = self.max_host_calls;
        self.host_calls += 1;
        if self.host_calls > max { Err(FatalHostCallError::HostCalls(max).into()) } else { Ok(()) }
    }

    /// Runs a computation over `bytes` bytes; a large one runs on another
    /// thread. The call is charged for its processor time.
    pub(super) async fn compute<T: Send + 'static>(
        &mut self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> wasmtime::Result<T> {
        if bytes <= MAX_INLINE_BYTES {
            return Ok(work());
        }
        let (done, ran) = self.shared.long_requests.compute(self.holds_write_lock(), work).await?;
        self.meter.add(ran);
        Ok(done)
    }

    pub(super) fn log(&self) -> &GuestLog {
        &self.log
    }

    /// Returns the recorder of the call; `None` if it is not recorded.
    pub(super) fn recorder(&self) -> Option<&Arc<Recorder>> {
        self.unit.as_ref().and_then(UnitOfWork::recorder)
    }

    /// Returns the replay that provides results instead of the host; `None`
    /// outside a replay.
    pub(super) fn player(&self) -> Option<&Arc<Player>> {
        self.player.as_ref()
    }

    pub(super) fn memory(&self) -> &InstanceMemory {
        &self.memory
    }

    pub(super) fn limiter(&mut self) -> &mut dyn ResourceLimiter {
        &mut self.memory
    }

    /// Returns the WASI state; created on first use.
    pub(super) fn wasi_without_access(&mut self) -> &mut EmptyWasi {
        let (unit, player, log) = (&self.unit, &self.player, &self.log);
        self.world.get_or_insert_with(|| {
            let (now, seed) = match (unit, player) {
                (Some(unit), _) => (unit.spec().call.now, wasi_seed(&unit.spec().call.seed)),
                (None, Some(player)) => (player.recording().about.at, player.wasi_seed()),
                (None, None) => (Timestamp(0), [0; 32]),
            };
            Box::new(EmptyWasi::new(now, seed, log))
        })
    }

    /// Charges the call's usage to its budget, once.
    fn charge(&mut self) {
        let Some(entry) = self.entry.take() else { return };
        entry.charge(Usage {
            calls: 1,
            cpu_us: u64::try_from(self.meter.ran().as_micros()).unwrap_or(u64::MAX),
            host_calls: self.host_calls.into(),
            documents: self.unit.as_ref().map_or(0, UnitOfWork::documents_used).into(),
        });
    }

    /// Returns the unit of work and the guest's last log lines after the end of
    /// a call.
    fn finish(mut self) -> (Option<UnitOfWork>, Vec<String>) {
        self.charge();
        (self.unit.take(), self.log.finish())
    }
}

impl Drop for CallState {
    /// Charges the usage of a call that was dropped before its end.
    fn drop(&mut self) {
        self.charge();
    }
}

/// An export to call, with its arguments.
pub(super) trait Invocation: Send + Sync + 'static {
    /// Type of the called export's result.
    type ReturnValue: Send + 'static;
    /// Setting that the deadline comes from, for the report of a call that exceeds it.
    const DEADLINE_SETTING: &'static str;
    /// Whether the call belongs with the long jobs after its first time slice,
    /// instead of the long requests.
    const IS_JOB: bool = false;

    /// Returns the limit of the call's processor time; `None` if only the deadline limits it.
    fn max_cpu(shared: &RuntimeState, area: &AreaLogContext) -> Option<TimeLimit> {
        let setting = "areas.limits.AREA.max_cpu_ms";
        shared.limits_of(area.name()).cpu.map(|time| TimeLimit { time, setting })
    }

    /// Calls the export in a new instance.
    fn invoke<'a>(
        &'a self,
        exports: &'a Exports,
        store: &'a mut Store<CallState>,
    ) -> impl Future<Output = wasmtime::Result<Self::ReturnValue>> + Send + 'a;
}

/// Call of the export `describe`.
pub(super) struct DescribeCall;

impl Invocation for DescribeCall {
    type ReturnValue = manifest::Manifest;
    const DEADLINE_SETTING: &'static str = "fixed for `describe`";

    fn max_cpu(_: &RuntimeState, _: &AreaLogContext) -> Option<TimeLimit> {
        Some(TimeLimit { time: DESCRIBE_CPU, setting: Self::DEADLINE_SETTING })
    }

    async fn invoke(
        &self,
        exports: &Exports,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<Self::ReturnValue> {
        exports.all.instantiate_async(&mut *store).await?.call_describe(store).await
    }
}

/// Call of the export `kinds` of the interface `batches`, which returns the kinds
/// of jobs that may run together.
pub(super) struct BatchLimitsCall;

/// Kind of a job and the maximum number of such jobs that run in one call, as the export `kinds`
/// of the interface `batches` returns them.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(super) struct JobBatchLimit {
    pub(super) kind: String,
    pub(super) most: u32,
}

impl Invocation for BatchLimitsCall {
    type ReturnValue = Vec<JobBatchLimit>;
    const DEADLINE_SETTING: &'static str = DescribeCall::DEADLINE_SETTING;

    fn max_cpu(shared: &RuntimeState, area: &AreaLogContext) -> Option<TimeLimit> {
        DescribeCall::max_cpu(shared, area)
    }

    async fn invoke(
        &self,
        exports: &Exports,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<Self::ReturnValue> {
        exports.call(AreaExport::Batches, store, ()).await
    }
}

impl Invocation for types::Request {
    type ReturnValue = Result<types::Reply, types::Problem>;
    const DEADLINE_SETTING: &'static str =
        "`deadline_ms` of its route, else limits.deadline_ms; at most limits.max_deadline_ms";

    async fn invoke(
        &self,
        exports: &Exports,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<Self::ReturnValue> {
        exports.call(AreaExport::Handle, store, (self,)).await
    }
}

impl Invocation for Job {
    type ReturnValue = Result<Outcome, JobError>;
    const DEADLINE_SETTING: &'static str =
        "`timeout_ms` of its job kind, at most jobs.max_timeout_ms";
    const IS_JOB: bool = true;

    async fn invoke(
        &self,
        exports: &Exports,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<Self::ReturnValue> {
        exports.call(AreaExport::Run, store, (self,)).await
    }
}

/// Jobs of one kind and workspace that run together in one call.
pub(super) struct JobBatch(pub(super) Vec<Job>);

impl Invocation for JobBatch {
    type ReturnValue = Result<Vec<Outcome>, JobError>;
    const DEADLINE_SETTING: &'static str = Job::DEADLINE_SETTING;
    const IS_JOB: bool = true;

    async fn invoke(
        &self,
        exports: &Exports,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<Self::ReturnValue> {
        exports.call(AreaExport::RunBatch, store, (self.0.as_slice(),)).await
    }
}

/// A call that has ended, successfully or not.
pub(super) struct FinishedCall<T> {
    pub(super) unit: Option<UnitOfWork>,
    pub(super) result: Result<T, TrapReport>,
    /// The guest's last log lines.
    pub(super) last_lines: Vec<String>,
}

/// Runs one call of a guest to its end, in a new instance and within its limits.
/// `stops` signals operators' actions that end the call.
pub(super) async fn run<I: Invocation>(
    exports: Arc<Exports>,
    state: CallState,
    invocation: I,
    stops: watch::Receiver<CallStopSignal>,
) -> FinishedCall<I::ReturnValue> {
    let meter = Arc::clone(&state.meter);
    let turn = state.unit.as_ref().map(|unit| Arc::clone(unit.turn()));
    let mut store = Store::new(exports.engine(), state);
    set_limits(&mut store, meter.clone());
    // A computing guest is trapped at its deadline, which captures its stack;
    // this timeout is for a guest that waits.
    let called =
        tokio::time::timeout(meter.deadline().time, invocation.invoke(&exports, &mut store));
    let ended = tokio::select! {
        biased;
        called = called => called.map_err(|_| CallError::Deadline(meter.deadline())),
        error = ended_early(turn, stops, &meter) => Err(error),
    };
    let result = match ended {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(TrapReport::new(error, store.data(), &meter)),
        Err(error) => Err(error.into()),
    };
    let (unit, last_lines) = store.into_data().finish();
    FinishedCall { unit, result, last_lines }
}

/// Time for which a call may still block other writers after an operator's
/// action; most calls end within it.
const WRITE_LOCK_GRACE: Duration = Duration::from_millis(500);

/// Waits until the call must end: it has blocked other writers for too long, or
/// an operator has replaced or removed its version.
async fn ended_early(
    turn: Option<Arc<WriteLockState>>,
    mut stops: watch::Receiver<CallStopSignal>,
    meter: &CallMeter,
) -> CallError {
    let Some(turn) = turn else { return std::future::pending().await };
    let limit = meter.write_lock_limit();
    let stopped = async {
        let mut turns = stops.borrow().turns;
        while stops.changed().await.is_ok() {
            let now = *stops.borrow_and_update();
            if now.begun_before.is_some_and(|replaced| meter.begun() < replaced) {
                return CallError::Replaced;
            }
            if now.turns != turns && turn.is_held() {
                tokio::time::sleep(WRITE_LOCK_GRACE).await;
                if turn.is_held() {
                    return CallError::Replaced;
                }
            }
            turns = now.turns;
        }
        std::future::pending().await
    };
    tokio::select! {
        held = turn.until_held_for(limit.wall) => turn_exceeded(limit, held),
        error = stopped => error,
    }
}

/// Sets the limits of a call on its wasmtime store.
fn set_limits(store: &mut Store<CallState>, meter: Arc<CallMeter>) {
    store.set_hostcall_fuel(MAX_HOST_CALL_BYTES);
    store.limiter(|state| state.limiter());
    store.epoch_deadline_callback(move |store| Ok(meter.tick(store.data().holds_write_lock())));
    store.set_epoch_deadline(1);
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::super::settings::Settings;
    use super::*;
    use assurance_core::config::AreaCallLimits;

    #[tokio::test]
    async fn a_call_that_waited_for_a_thread_had_begun_before() {
        let settings = Settings::default();
        let deadline = TimeLimit { time: Duration::from_secs(60), setting: "a test's" };
        let limit = settings.call_limits(AreaCallLimits::default()).turn;
        let meter = CallMeter::new(&settings, deadline, None, limit);
        let (stops, received) = watch::channel(CallStopSignal::default());
        let replaced = meter.begun() + Duration::from_nanos(1);
        stops.send_modify(|stops| stops.begun_before = Some(replaced));
        let ended = ended_early(Some(Arc::default()), received, &meter).now_or_never();
        assert!(matches!(ended, Some(CallError::Replaced)), "{ended:?}");
    }
}
