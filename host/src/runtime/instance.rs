//! One call: a fresh store, a fresh instance, and what host functions see of
//! it. Gone with the call; no instance ever serves two.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use wasmtime::{ResourceLimiter, Store};

use super::Shared;
use super::bindings::assurance::area::{manifest, types};
use super::bindings::{Job, JobError, Outcome};
use super::component::Stops;
use super::exports::{Export, Exports};
use super::limits::Memory;
use super::log::GuestLog;
use super::overstay::{Meter, Overstayers};
use super::trap::{Failure, Stop, turn_exceeded};
use super::wasi::{EmptyWorld, wasi_seed};
use crate::budgets::{Entry, Usage};
use crate::domain::manifest::Capability;
use crate::domain::time::Timestamp;
use crate::journal::{Journal, Journals, Level};
use crate::recordings::{Player, Recorder};
use crate::work::{CallError, Turn, UnitOfWork};

/// Bytes that a host function computes over on the thread that serves the call:
/// some milliseconds.
const MOST_AT_ONCE: usize = 1 << 20;

/// Whose code runs, as operators read it.
#[derive(Debug)]
pub(super) struct AreaName {
    name: OnceLock<String>,
    digest: String,
    journals: Arc<Journals>,
    /// Found when there is something to tell.
    journal: OnceLock<Arc<Journal>>,
}

impl AreaName {
    /// Its name is not known before it has said it.
    pub(super) fn new(digest: String, journals: Arc<Journals>) -> Self {
        Self { name: OnceLock::new(), digest, journals, journal: OnceLock::new() }
    }

    pub(super) fn set(&self, name: &str) {
        let _ = self.name.set(name.to_owned());
    }

    pub(super) fn name(&self) -> &str {
        self.name.get().map_or("(not described)", String::as_str)
    }

    /// Where operators read what it says; nothing before it has a name.
    pub(super) fn journal(&self) -> Option<&Journal> {
        let name = self.name.get()?;
        Some(self.journal.get_or_init(|| self.journals.of(name)))
    }

    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    pub(super) fn short_digest(&self) -> &str {
        self.digest.get(..12).unwrap_or(&self.digest)
    }
}

/// What one call's host functions work on.
pub(super) struct CallState {
    pub(super) shared: Arc<Shared>,
    pub(super) area: Arc<AreaName>,
    /// Nothing in `describe`, which has no capabilities, and where a recording
    /// answers.
    unit: Option<UnitOfWork>,
    player: Option<Arc<Player>>,
    /// Who pays for it, until that is done; nobody in `describe`.
    entry: Option<Arc<Entry>>,
    meter: Arc<Meter>,
    host_calls: u32,
    max_host_calls: u32,
    memory: Memory,
    log: GuestLog,
    world: Option<Box<EmptyWorld>>,
    /// Where an operator's action ends the call; not in a replay.
    stops: Option<watch::Receiver<Stops>>,
}

impl CallState {
    pub(super) fn new(
        shared: Arc<Shared>,
        area: Arc<AreaName>,
        unit: Option<UnitOfWork>,
        entry: Option<Arc<Entry>>,
        meter: Arc<Meter>,
    ) -> Self {
        let (settings, limits) = (&shared.settings, shared.limits_of(area.name()));
        Self {
            unit,
            player: None,
            host_calls: 0,
            max_host_calls: limits.host_calls,
            memory: Memory::new(shared.memory.clone(), limits.memory_bytes, entry.clone()),
            entry,
            meter,
            log: GuestLog::new(settings.max_log_lines, settings.max_log_line_bytes),
            world: None,
            stops: None,
            area,
            shared,
        }
    }

    /// Lets operators' actions end the call.
    pub(super) fn set_stops(&mut self, stops: watch::Receiver<Stops>) {
        self.stops = Some(stops);
    }

    /// Whether the call keeps others from writing.
    fn holds_turn(&self) -> bool {
        self.unit.as_ref().is_some_and(|unit| unit.turn().is_held())
    }

    /// A call that is run again from a recording.
    pub(super) fn replay(
        shared: Arc<Shared>,
        area: Arc<AreaName>,
        player: Arc<Player>,
        meter: Arc<Meter>,
    ) -> Self {
        let mut state = Self::new(shared, area, None, None, meter);
        state.player = Some(player);
        state
    }

    /// Every host function that works on the call begins here: it counts, and
    /// `describe` may call none.
    pub(super) fn enter(&mut self, capability: Capability) -> wasmtime::Result<&mut UnitOfWork> {
        self.count(capability)?;
        self.unit.as_mut().ok_or_else(|| Stop::InDescribe(capability).into())
    }

    /// Where a host function begins that needs nothing of the call.
    pub(super) fn count(&mut self, capability: Capability) -> wasmtime::Result<()> {
        let max = self.max_host_calls;
        self.host_calls += 1;
        if self.host_calls > max {
            return Err(Stop::HostCalls(max).into());
        }
        if self.unit.is_none() && self.player.is_none() {
            return Err(Stop::InDescribe(capability).into());
        }
        Ok(())
    }

    /// Computes over so many bytes, many of them on a thread of low priority. The
    /// call is charged for it.
    pub(super) async fn compute<T: Send + 'static>(
        &mut self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> wasmtime::Result<T> {
        if bytes <= MOST_AT_ONCE {
            return Ok(work());
        }
        let (done, ran) = self.shared.long_requests.compute(work).await?;
        self.meter.add(ran);
        Ok(done)
    }

    /// Passes on what the guest says.
    pub(super) fn write_log(&mut self, level: Level, message: &str) {
        let origin = self.unit.as_ref().map(|unit| &unit.spec().call.origin);
        self.log.write(&self.area, origin, level, message);
    }

    /// Who writes the call down, if anybody does.
    pub(super) fn recorder(&self) -> Option<&Arc<Recorder>> {
        self.unit.as_ref().and_then(UnitOfWork::recorder)
    }

    /// What answers instead of the host, if anything does.
    pub(super) fn player(&self) -> Option<&Arc<Player>> {
        self.player.as_ref()
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(super) fn limiter(&mut self) -> &mut dyn ResourceLimiter {
        &mut self.memory
    }

    /// Made for those that ask.
    pub(super) fn empty_world(&mut self) -> &mut EmptyWorld {
        let (unit, player) = (&self.unit, &self.player);
        self.world.get_or_insert_with(|| {
            let (now, seed) = match (unit, player) {
                (Some(unit), _) => (unit.spec().call.now, wasi_seed(&unit.spec().call.seed)),
                (None, Some(player)) => (player.recording().about.at, player.wasi_seed()),
                (None, None) => (Timestamp(0), [0; 32]),
            };
            Box::new(EmptyWorld::new(now, seed))
        })
    }

    /// Charges what the call has used to whoever pays for it, once.
    fn charge(&mut self) {
        let Some(entry) = self.entry.take() else { return };
        entry.charge(Usage {
            calls: 1,
            cpu_us: u64::try_from(self.meter.ran().as_micros()).unwrap_or(u64::MAX),
            host_calls: self.host_calls.into(),
            documents: self.unit.as_ref().map_or(0, UnitOfWork::documents_used).into(),
        });
    }

    /// What is left of a call that has ended: its unit of work, and what the
    /// guest logged last.
    fn finish(mut self) -> (Option<UnitOfWork>, Vec<String>) {
        self.charge();
        let unit = self.unit.take();
        let origin = unit.as_ref().map(|unit| &unit.spec().call.origin);
        let last_lines = self.log.finish(&self.area, origin);
        (unit, last_lines)
    }
}

impl Drop for CallState {
    /// A call that nobody waits for any longer is paid for like any other.
    fn drop(&mut self) {
        self.charge();
    }
}

/// What is called, and with what.
pub(super) trait Invocation: Send + Sync + 'static {
    /// What the export gives back.
    type Answer: Send + 'static;

    /// How long it may compute, where that is bounded.
    fn max_cpu(shared: &Shared, area: &AreaName) -> Option<Duration> {
        shared.limits_of(area.name()).cpu
    }

    /// Where it goes on when it runs for long.
    fn long(shared: &Shared) -> &Overstayers {
        &shared.long_requests
    }

    /// Calls the export, in a fresh instance.
    fn invoke<'a>(
        &'a self,
        exports: &'a Exports,
        store: &'a mut Store<CallState>,
    ) -> impl Future<Output = wasmtime::Result<Self::Answer>> + Send + 'a;
}

/// What the area is.
pub(super) struct Describe;

impl Invocation for Describe {
    type Answer = manifest::Manifest;

    fn max_cpu(shared: &Shared, _: &AreaName) -> Option<Duration> {
        Some(shared.settings.describe_cpu())
    }

    async fn invoke(
        &self,
        exports: &Exports,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<Self::Answer> {
        exports.all.instantiate_async(&mut *store).await?.call_describe(store).await
    }
}

impl Invocation for types::Request {
    type Answer = Result<types::Reply, types::Problem>;

    async fn invoke(
        &self,
        exports: &Exports,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<Self::Answer> {
        let handle = exports.instantiate(Export::Handle, store).await?;
        let (answer,) = handle.call_async(store, (self,)).await?;
        Ok(answer)
    }
}

impl Invocation for Job {
    type Answer = Result<Outcome, JobError>;

    fn long(shared: &Shared) -> &Overstayers {
        &shared.long_jobs
    }

    async fn invoke(
        &self,
        exports: &Exports,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<Self::Answer> {
        let run = exports.instantiate(Export::Run, store).await?;
        let (outcome,) = run.call_async(store, (self,)).await?;
        Ok(outcome)
    }
}

/// A call that has ended, one way or the other.
pub(super) struct Finished<T> {
    pub(super) unit: Option<UnitOfWork>,
    pub(super) result: Result<T, Failure>,
    /// What the guest logged last.
    pub(super) last_lines: Vec<String>,
}

impl<T> Finished<T> {
    /// It did not come to a call.
    pub(super) fn not_begun(unit: Option<UnitOfWork>, error: CallError) -> Self {
        Self { unit, result: Err(error.into()), last_lines: Vec::new() }
    }
}

/// Runs one call to its end.
pub(super) async fn run<I: Invocation>(
    exports: Arc<Exports>,
    state: CallState,
    invocation: I,
) -> Finished<I::Answer> {
    let meter = Arc::clone(&state.meter);
    let turn = state.unit.as_ref().map(|unit| Arc::clone(unit.turn()));
    let stops = state.stops.clone();
    let mut store = Store::new(exports.engine(), state);
    arm(&mut store, meter.clone());
    // A guest that computes is trapped at its deadline, which shows where it
    // was; this is for one that waits.
    let called = tokio::time::timeout(meter.deadline(), invocation.invoke(&exports, &mut store));
    let ended = tokio::select! {
        biased;
        called = called => called.map_err(|_| CallError::Deadline(meter.deadline())),
        error = ended_early(turn, stops, &meter) => Err(error),
    };
    let result = match ended {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(Failure::new(error, store.data(), &meter)),
        Err(error) => Err(error.into()),
    };
    let (unit, last_lines) = store.into_data().finish();
    Finished { unit, result, last_lines }
}

/// How long a call may go on to keep others from writing where an operator's
/// change waits for that: most calls have ended by then.
const LAST_TURN: Duration = Duration::from_millis(500);

/// Waits until the call is ended from outside: it has kept others from writing
/// for too long, or an operator has replaced or removed its version.
async fn ended_early(
    turn: Option<Arc<Turn>>,
    stops: Option<watch::Receiver<Stops>>,
    meter: &Meter,
) -> CallError {
    let Some(turn) = turn else { return std::future::pending().await };
    let begun = Instant::now();
    let overdue = async {
        loop {
            turn.until_taken().await;
            tokio::time::sleep(meter.max_turn().wall).await;
            if turn.is_held() {
                return turn_exceeded(meter.max_turn());
            }
        }
    };
    let stopped = async {
        let Some(mut stops) = stops else { return std::future::pending().await };
        let mut turns = stops.borrow().turns;
        while stops.changed().await.is_ok() {
            let now = *stops.borrow_and_update();
            if now.begun_before.is_some_and(|replaced| begun < replaced) {
                return CallError::Replaced;
            }
            if now.turns != turns && turn.is_held() {
                tokio::time::sleep(LAST_TURN).await;
                if turn.is_held() {
                    return CallError::Replaced;
                }
            }
            turns = now.turns;
        }
        std::future::pending().await
    };
    tokio::select! {
        error = overdue => error,
        error = stopped => error,
    }
}

/// Puts the call's limits on its store.
fn arm(store: &mut Store<CallState>, meter: Arc<Meter>) {
    store.set_hostcall_fuel(store.data().shared.settings.max_host_call_bytes);
    store.limiter(|state| state.limiter());
    store.epoch_deadline_callback(move |store| Ok(meter.tick(store.data().holds_turn())));
    store.set_epoch_deadline(1);
}
