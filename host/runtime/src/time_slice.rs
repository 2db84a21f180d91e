//! Scheduling of calls: processor time, time slices, and low-priority threads.
//!
//! A running guest yields at every tick. After its first time slice it moves to
//! a low-priority thread, which is shared by all such requests; jobs have
//! another one. So short calls never wait for long ones, and jobs do not wait
//! for long requests.
//!
//! Calls on the low-priority thread share it in inverse proportion to the time
//! slices that they have used: endless loops delay a call that needs two slices
//! by little (multilevel feedback queue).
//!
//! A call that blocks other writers runs on an ordinary thread for that time.
//! At low priority, short writing calls would wait for long ones (priority
//! inversion). `write_lock_limit` limits this time.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::future::BoxFuture;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;
use wasmtime::UpdateDeadline;

use super::settings::{Settings, WriteLockLimit, millis};
use assurance_work::TimeLimit;

/// Extra time before the host abandons a call that does not reach an epoch
/// check after its deadline.
const GRACE: Duration = Duration::from_millis(50);

/// Number of ticks that a call computes before it yields while it blocks other
/// writers. Each yield on a busy thread delays the waiting writers.
const TICKS_WITH_WRITE_LOCK: u32 = 10;

/// Number of time slices after which a call counts as long.
const LONG_SLICES: u32 = 4;

/// Maximum number of turns that a call gives to the other calls of its thread
/// at one tick.
const MAX_YIELDS: u128 = 50;

/// Measures the time of one call and compares it with the call's limits.
/// Waiting for the host or for a processor counts only towards the deadline,
/// not as processor time.
#[derive(Debug)]
pub(super) struct CallMeter {
    born: Instant,
    deadline: TimeLimit,
    max_cpu: Option<TimeLimit>,
    tick: Duration,
    slice: Duration,
    slice_ticks: u32,
    ticks: AtomicU32,
    ran_ns: AtomicU64,
    /// Processor time of the call until its last tick, in nanoseconds.
    ran_at_tick_ns: AtomicU64,
    write_lock_limit: WriteLockLimit,
    /// Processor time at which the call began to block other writers, in
    /// nanoseconds and at least 1; 0 if it does not.
    write_lock_from_ns: AtomicU64,
}

impl CallMeter {
    pub(super) fn new(
        settings: &Settings,
        deadline: TimeLimit,
        max_cpu: Option<TimeLimit>,
        write_lock_limit: WriteLockLimit,
    ) -> Self {
        let config = &settings.config.runtime;
        Self {
            born: Instant::now(),
            deadline,
            max_cpu,
            tick: settings.tick(),
            slice: millis(config.first_slice_ms),
            slice_ticks: config.first_slice_ms / config.epoch_tick_ms.max(1),
            ticks: AtomicU32::new(0),
            ran_ns: AtomicU64::new(0),
            ran_at_tick_ns: AtomicU64::new(0),
            write_lock_limit,
            write_lock_from_ns: AtomicU64::new(0),
        }
    }

    /// Returns the limit of the time for which the call may block other
    /// writers.
    pub(super) fn write_lock_limit(&self) -> WriteLockLimit {
        self.write_lock_limit
    }

    /// Returns whether the call has computed for too long while it blocked
    /// other writers.
    pub(super) fn exceeds_write_lock_limit(&self) -> bool {
        let from = self.write_lock_from_ns.load(Ordering::Relaxed);
        from != 0
            && self.ran().saturating_sub(Duration::from_nanos(from)) >= self.write_lock_limit.cpu
    }

    /// Returns whether the call blocked other writers at its last tick.
    fn holds_write_lock(&self) -> bool {
        self.write_lock_from_ns.load(Ordering::Relaxed) != 0
    }

    fn note_write_lock(&self, is_held: bool) {
        let from = self.write_lock_from_ns.load(Ordering::Relaxed);
        match (is_held, from) {
            (true, 0) => {
                let ran = self.ran_ns.load(Ordering::Relaxed);
                self.write_lock_from_ns.store(ran.max(1), Ordering::Relaxed);
            }
            (false, 1..) => self.write_lock_from_ns.store(0, Ordering::Relaxed),
            _ => {}
        }
    }

    pub(super) fn deadline(&self) -> TimeLimit {
        self.deadline
    }

    /// Returns the time at which the call began, before any thread polled it.
    pub(super) fn begun(&self) -> Instant {
        self.born
    }

    /// Returns the processor time of the call.
    pub(super) fn ran(&self) -> Duration {
        Duration::from_nanos(self.ran_ns.load(Ordering::Relaxed))
    }

    /// Adds processor time that a computation of the call has used on another
    /// thread.
    pub(super) fn add(&self, ran: Duration) {
        let ran_ns = u64::try_from(ran.as_nanos()).unwrap_or(u64::MAX);
        self.ran_ns.fetch_add(ran_ns, Ordering::Relaxed);
    }

    /// Returns the call's limit of processor time if the call has exceeded it;
    /// otherwise `None`.
    pub(super) fn exceeded(&self) -> Option<TimeLimit> {
        self.max_cpu.filter(|max| self.ran() >= max.time)
    }

    /// Handles a tick of the epoch timer: traps a guest that has exceeded its
    /// deadline or processor time, lets any other yield.
    pub(super) fn tick(&self, holds_write_lock: bool) -> UpdateDeadline {
        let ticks = self.ticks.fetch_add(1, Ordering::Relaxed);
        self.ran_at_tick_ns.store(self.ran_ns.load(Ordering::Relaxed), Ordering::Relaxed);
        self.note_write_lock(holds_write_lock);
        let computed = self.exceeded().is_some() || self.exceeds_write_lock_limit();
        if computed || self.born.elapsed() >= self.deadline.time {
            return UpdateDeadline::Interrupt;
        }
        if holds_write_lock && !ticks.is_multiple_of(TICKS_WITH_WRITE_LOCK) {
            return UpdateDeadline::Continue(1);
        }
        UpdateDeadline::YieldCustom(1, Box::pin(yield_turns(self.yields(holds_write_lock))))
    }

    /// Returns the number of turns to give to other calls: one, and one more
    /// for each time slice that the call has used. A call that blocks other
    /// writers gives one.
    fn yields(&self, holds_write_lock: bool) -> u128 {
        let slices = self.ran().as_nanos() / self.slice.as_nanos().max(1);
        if holds_write_lock { 1 } else { (1 + slices).min(MAX_YIELDS) }
    }

    /// Returns whether the call has exceeded its first time slice.
    fn exceeds_first_slice(&self) -> bool {
        self.exceeds_slices(1)
    }

    /// Returns whether the call needs one of its area's places for long calls.
    fn is_long(&self) -> bool {
        self.exceeds_slices(LONG_SLICES)
    }

    /// Returns whether the call had exceeded this number of time slices at its
    /// last tick. Both time and ticks must have passed: a thread that was not
    /// scheduled sees much time but few ticks, a guest that waits for the host
    /// sees many ticks but little time.
    ///
    /// The result changes only at a tick, where the call knows whether it blocks
    /// other writers: it must not wait for a place while it does.
    fn exceeds_slices(&self, slices: u32) -> bool {
        let ran = Duration::from_nanos(self.ran_at_tick_ns.load(Ordering::Relaxed));
        self.ticks.load(Ordering::Relaxed) >= self.slice_ticks.saturating_mul(slices)
            && ran >= self.slice * slices
    }

    fn left(&self) -> Duration {
        self.deadline.time.saturating_sub(self.born.elapsed())
    }

    fn poll<T>(&self, call: &mut BoxFuture<'static, T>, cx: &mut Context<'_>) -> Poll<T> {
        let entered = PollClock::start(self.ticks.load(Ordering::Relaxed));
        let polled = call.as_mut().poll(cx);
        self.add(entered.ran(self.tick));
        polled
    }
}

/// Measures the processor time of one poll of a call.
#[derive(Debug)]
enum PollClock {
    /// Before the call's first tick, which covers most calls: the start time.
    /// Reading it takes a fortieth of the microsecond that the thread's
    /// processor time takes.
    Wall(Instant),
    /// After the call's first tick: the thread's processor time at the start,
    /// in nanoseconds.
    Thread(u64),
}

impl PollClock {
    fn start(ticks: u32) -> Self {
        if ticks == 0 { Self::Wall(Instant::now()) } else { Self::Thread(processor_ns()) }
    }

    /// Returns the processor time of the poll. Elapsed time counts as at most
    /// one tick: a guest that runs for longer yields, so the rest was spent
    /// waiting for a processor.
    fn ran(&self, tick: Duration) -> Duration {
        match self {
            Self::Wall(began) => began.elapsed().min(tick),
            Self::Thread(began_ns) => {
                Duration::from_nanos(processor_ns().saturating_sub(*began_ns))
            }
        }
    }
}

/// Returns the processor time of this thread, in nanoseconds.
fn processor_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap_or_default()
}

/// Reason why the host ended a call that did not end by itself.
#[derive(Debug)]
pub(super) enum ForcedEndReason {
    /// The request became long while all of the area's places for long requests
    /// were taken.
    Overloaded,
    /// The guest never yielded after its deadline, or waited until then for a
    /// place among the long jobs; the host abandoned the call.
    Deadline,
    /// The host panicked in the call.
    Panicked(String),
}

/// Places for the long calls of one area: of its requests, or of its jobs.
#[derive(Debug)]
pub(super) struct LongCallPlaces {
    free: Arc<Semaphore>,
    /// Whether a call waits for a place instead of being refused.
    waits: bool,
}

impl LongCallPlaces {
    /// Creates places for long requests. A request without a place is refused:
    /// its client can try again, and while it waited it would keep its
    /// connection.
    pub(super) fn for_requests(count: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(count)), waits: false }
    }

    /// Creates places for long jobs. A job waits for a place: if it were
    /// refused, its next run would send again what this one has sent.
    pub(super) fn for_jobs(count: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(count)), waits: true }
    }

    /// Takes a place for the call that this meter belongs to.
    async fn take(&self, meter: &CallMeter) -> Result<OwnedSemaphorePermit, ForcedEndReason> {
        let free = Arc::clone(&self.free);
        if !self.waits {
            return free.try_acquire_owned().map_err(|_| ForcedEndReason::Overloaded);
        }
        match timeout(meter.left(), free.acquire_owned()).await {
            Ok(place) => place.map_err(|_| ForcedEndReason::Overloaded),
            Err(_) => Err(ForcedEndReason::Deadline),
        }
    }
}

/// A low-priority thread with an executor.
#[derive(Debug)]
pub(super) struct LowPriorityExecutor {
    executor: Handle,
    /// Dropping this sender ends the thread.
    _alive: oneshot::Sender<()>,
}

impl LowPriorityExecutor {
    /// Starts a low-priority thread with this name and niceness.
    pub(super) fn start(name: &str, niceness: i32) -> anyhow::Result<Self> {
        // Checks timers and other tasks after every poll.
        let runtime = Builder::new_current_thread()
            .enable_all()
            .event_interval(1)
            .thread_name(format!("{name}-compute"))
            .on_thread_start(move || lower_priority(niceness))
            .build()?;
        let executor = runtime.handle().clone();
        let (alive, ended) = oneshot::channel::<()>();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                lower_priority(niceness);
                let _ = runtime.block_on(ended);
                runtime.shutdown_background();
            })
            .context("cannot start the thread for long calls")?;
        Ok(Self { executor, _alive: alive })
    }

    /// Runs a call here for its first time slice, then on the low-priority
    /// thread, where a long call needs one of its area's `places`. While no
    /// place is free, calls of the area start on the low-priority thread.
    /// Otherwise many endless loops would occupy all ordinary threads with
    /// first time slices.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        mut call: BoxFuture<'static, T>,
        meter: Arc<CallMeter>,
        places: &LongCallPlaces,
    ) -> Result<T, ForcedEndReason> {
        let mut place = None;
        let mut is_aside = places.free.available_permits() == 0;
        loop {
            let (has_place, clock) = (place.is_some(), Arc::clone(&meter));
            let paused = if is_aside {
                let until = move |meter: &CallMeter| {
                    meter.holds_write_lock() || (meter.is_long() && !has_place)
                };
                self.run_at_low_priority(
                    async move { run_until(call, &clock, until).await },
                    meter.left(),
                )
                .await?
            } else {
                run_until(call, &meter, |meter| {
                    meter.exceeds_first_slice() && !meter.holds_write_lock()
                })
                .await
            };
            call = match paused {
                ControlFlow::Break(ended) => return Ok(ended),
                ControlFlow::Continue(call) => call,
            };
            is_aside = !meter.holds_write_lock();
            if is_aside && meter.is_long() && place.is_none() {
                place = Some(places.take(&meter).await?);
            }
        }
    }

    /// Runs a computation of a call on another thread: with low priority, or
    /// with normal priority if the call holds the write lock, for which other
    /// calls wait. Returns its result and its processor time.
    pub(super) async fn compute<T: Send + 'static>(
        &self,
        holds_write_lock: bool,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Duration), tokio::task::JoinError> {
        let measured = move || {
            let clock = PollClock::Thread(processor_ns());
            let done = work();
            (done, clock.ran(Duration::MAX))
        };
        let task = match holds_write_lock {
            true => tokio::task::spawn_blocking(measured),
            false => self.executor.spawn_blocking(measured),
        };
        task.await
    }

    /// Runs a future on the low-priority thread until its deadline.
    async fn run_at_low_priority<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
        left: Duration,
    ) -> Result<T, ForcedEndReason> {
        // If the caller is dropped, the guest ends at the next epoch tick.
        let task = AbortOnDropHandle::new(self.executor.spawn(task.in_current_span()));
        match timeout(left + GRACE, task).await {
            Ok(Ok(ended)) => Ok(ended),
            Ok(Err(error)) => Err(ForcedEndReason::Panicked(error.to_string())),
            Err(_) => Err(ForcedEndReason::Deadline),
        }
    }
}

/// Yields to the other tasks of this thread, this number of times.
async fn yield_turns(turns: u128) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}

/// Polls a call until it ends (`Break`), or until `moves` returns true because
/// the call has to move to another thread, where it continues.
async fn run_until<T>(
    mut call: BoxFuture<'static, T>,
    meter: &CallMeter,
    moves: impl Fn(&CallMeter) -> bool,
) -> ControlFlow<T, BoxFuture<'static, T>> {
    let ended = poll_fn(|cx| match meter.poll(&mut call, cx) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending if moves(meter) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    match ended.await {
        Some(ended) => ControlFlow::Break(ended),
        None => ControlFlow::Continue(call),
    }
}

/// Sets the niceness of the current thread. On Linux, threads have their own
/// niceness.
#[cfg(target_os = "linux")]
pub(super) fn lower_priority(niceness: i32) {
    let thread = rustix::thread::gettid();
    if let Err(error) = rustix::process::setpriority_process(Some(thread), niceness) {
        tracing::warn!(%error, niceness, "cannot lower the priority of a thread");
    }
}

/// Does nothing on systems other than Linux: there the niceness belongs to the
/// whole process, with its short calls.
#[cfg(not(target_os = "linux"))]
pub(super) fn lower_priority(_niceness: i32) {}

#[cfg(test)]
mod tests;
