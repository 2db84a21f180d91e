//! Time: what a call has run for, when it must give way, and where the calls
//! go that run for long.
//!
//! A running guest yields at every tick. Having run for its first slice, it
//! is moved, as it stands, to a thread of lower priority that all such calls
//! share, or all such jobs; so quick calls never wait for long ones, and jobs
//! not for requests that compute.
//!
//! A call that keeps others from writing runs on an ordinary thread while it
//! does: at lower priority, quick calls that write would wait for long ones
//! (priority inversion). `max_turn` bounds how long that is.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::future::BoxFuture;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tracing::Instrument as _;
use wasmtime::UpdateDeadline;

use super::settings::{MaxTurn, Settings};

/// How much later than its deadline a call is given up that does not even get
/// to notice it.
const GRACE: Duration = Duration::from_millis(50);

/// How many ticks a call computes that keeps others from writing before it
/// yields: on a busy thread, each time costs all of them a round.
const TICKS_OF_TURN: u32 = 10;

/// One call's clock. Running is what the processor did for the call, so waiting
/// for the host, or for the processor, costs the guest nothing but its deadline.
#[derive(Debug)]
pub(super) struct Meter {
    born: Instant,
    deadline: Duration,
    max_cpu: Option<Duration>,
    tick: Duration,
    slice: Duration,
    slice_ticks: u32,
    ticks: AtomicU32,
    ran_ns: AtomicU64,
    max_turn: MaxTurn,
    /// What the call had run for when it was seen to keep others from writing,
    /// in nanoseconds and at least 1; 0 while it does not.
    turn_from_ns: AtomicU64,
}

impl Meter {
    pub(super) fn new(
        settings: &Settings,
        deadline: Duration,
        max_cpu: Option<Duration>,
        max_turn: MaxTurn,
    ) -> Self {
        Self {
            born: Instant::now(),
            deadline,
            max_cpu,
            tick: settings.tick(),
            slice: settings.first_slice(),
            slice_ticks: settings.first_slice_ms / settings.epoch_tick_ms.max(1),
            ticks: AtomicU32::new(0),
            ran_ns: AtomicU64::new(0),
            max_turn,
            turn_from_ns: AtomicU64::new(0),
        }
    }

    /// How long the call may keep others from writing.
    pub(super) fn max_turn(&self) -> MaxTurn {
        self.max_turn
    }

    /// Whether it has computed for too long while it kept others from writing.
    pub(super) fn exceeded_turn(&self) -> bool {
        let from = self.turn_from_ns.load(Ordering::Relaxed);
        from != 0 && self.ran().saturating_sub(Duration::from_nanos(from)) >= self.max_turn.cpu
    }

    /// Whether it kept others from writing at its last tick.
    fn holds_turn(&self) -> bool {
        self.turn_from_ns.load(Ordering::Relaxed) != 0
    }

    fn note_turn(&self, is_held: bool) {
        let from = self.turn_from_ns.load(Ordering::Relaxed);
        match (is_held, from) {
            (true, 0) => {
                let ran = self.ran_ns.load(Ordering::Relaxed);
                self.turn_from_ns.store(ran.max(1), Ordering::Relaxed);
            }
            (false, 1..) => self.turn_from_ns.store(0, Ordering::Relaxed),
            _ => {}
        }
    }

    pub(super) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// How long the call has run.
    pub(super) fn ran(&self) -> Duration {
        Duration::from_nanos(self.ran_ns.load(Ordering::Relaxed))
    }

    /// Adds what another thread has run for the call.
    pub(super) fn add(&self, ran: Duration) {
        let ran_ns = u64::try_from(ran.as_nanos()).unwrap_or(u64::MAX);
        self.ran_ns.fetch_add(ran_ns, Ordering::Relaxed);
    }

    /// What it might have run, where it has run for longer.
    pub(super) fn exceeded(&self) -> Option<Duration> {
        self.max_cpu.filter(|max| self.ran() >= *max)
    }

    /// At a tick: trap a guest that is past its deadline or has run for too
    /// long, let every other one give way.
    pub(super) fn tick(&self, holds_turn: bool) -> UpdateDeadline {
        let ticks = self.ticks.fetch_add(1, Ordering::Relaxed);
        self.note_turn(holds_turn);
        let computed = self.exceeded().is_some() || self.exceeded_turn();
        if computed || self.born.elapsed() >= self.deadline {
            return UpdateDeadline::Interrupt;
        }
        if holds_turn && !ticks.is_multiple_of(TICKS_OF_TURN) {
            return UpdateDeadline::Continue(1);
        }
        UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now()))
    }

    /// Both must have passed: a thread that was not scheduled for a while sees
    /// much time but few ticks, a guest that waits for the host the opposite.
    fn overstays(&self) -> bool {
        self.ticks.load(Ordering::Relaxed) >= self.slice_ticks && self.ran() >= self.slice
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_sub(self.born.elapsed())
    }

    fn poll<T>(&self, call: &mut BoxFuture<'static, T>, cx: &mut Context<'_>) -> Poll<T> {
        let entered = Clock::start(self.ticks.load(Ordering::Relaxed));
        let polled = call.as_mut().poll(cx);
        self.add(entered.ran(self.tick));
        polled
    }
}

/// Measures one poll.
#[derive(Debug)]
enum Clock {
    /// Of a call that has not seen a tick yet: nearly every one. Asking the
    /// kernel for the thread's time takes a microsecond, this a fortieth of it.
    Wall(Instant),
    /// Of every other call: in nanoseconds of the thread's own time.
    Thread(u64),
}

impl Clock {
    fn start(ticks: u32) -> Self {
        if ticks == 0 { Self::Wall(Instant::now()) } else { Self::Thread(processor_ns()) }
    }

    /// By the wall's clock a tick at most: a guest that runs for longer gives
    /// way, so what is longer was spent waiting for the processor, and a call
    /// must not be taken for a long one because the machine is busy.
    fn ran(&self, tick: Duration) -> Duration {
        match self {
            Self::Wall(began) => began.elapsed().min(tick),
            Self::Thread(began_ns) => {
                Duration::from_nanos(processor_ns().saturating_sub(*began_ns))
            }
        }
    }
}

/// What the processor has done for this thread, in nanoseconds.
fn processor_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap_or_default()
}

/// Why a call's future has no end of its own.
#[derive(Debug)]
pub(super) enum Lost {
    /// Its area has too many long calls already.
    Overloaded,
    /// It did not even notice its deadline.
    Deadline,
    /// The host panicked in it.
    Panicked(String),
}

/// A thread of lower priority and its executor.
#[derive(Debug)]
pub(super) struct Overstayers {
    executor: Handle,
    /// Dropped: the thread ends.
    _alive: oneshot::Sender<()>,
}

impl Overstayers {
    /// Starts the thread, under this name.
    pub(super) fn start(name: &str, niceness: i32) -> anyhow::Result<Self> {
        // Timers and other guests get their turn after every single poll.
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

    /// Runs a call here for its first slice, and then over there. While an
    /// area has as many long calls as it may, its further calls run over there
    /// from the beginning: a flood of loops would otherwise fill every ordinary
    /// thread with first slices.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        mut call: BoxFuture<'static, T>,
        meter: Arc<Meter>,
        places: &Arc<Semaphore>,
    ) -> Result<T, Lost> {
        let mut place = None;
        let mut is_aside = places.available_permits() == 0;
        loop {
            let (has_place, clock) = (place.is_some(), Arc::clone(&meter));
            let paused = if is_aside {
                let until =
                    move |meter: &Meter| meter.holds_turn() || (meter.overstays() && !has_place);
                self.aside(async move { run_until(call, &clock, until).await }, meter.left())
                    .await?
            } else {
                run_until(call, &meter, |meter| meter.overstays() && !meter.holds_turn()).await
            };
            call = match paused {
                Slice::Ended(ended) => return Ok(ended),
                Slice::Paused(call) => call,
            };
            is_aside = !meter.holds_turn();
            if is_aside && place.is_none() {
                place = Some(places.clone().try_acquire_owned().map_err(|_| Lost::Overloaded)?);
            }
        }
    }

    /// Computes on a further thread of the same priority. Returns the processor
    /// time that took as well.
    pub(super) async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Duration), tokio::task::JoinError> {
        let measured = move || {
            let clock = Clock::Thread(processor_ns());
            let done = work();
            (done, clock.ran(Duration::MAX))
        };
        self.executor.spawn_blocking(measured).await
    }

    /// Runs a future on the thread of lower priority, until its deadline.
    async fn aside<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
        left: Duration,
    ) -> Result<T, Lost> {
        let task = AbortOnDrop(self.executor.spawn(task.in_current_span()));
        match tokio::time::timeout(left + GRACE, task).await {
            Ok(Ok(ended)) => Ok(ended),
            Ok(Err(error)) => Err(Lost::Panicked(error.to_string())),
            Err(_) => Err(Lost::Deadline),
        }
    }
}

/// Where a call is after it has run for a while.
enum Slice<T> {
    Ended(T),
    Paused(BoxFuture<'static, T>),
}

/// Runs a call to its end, or until it is to go on elsewhere.
async fn run_until<T>(
    mut call: BoxFuture<'static, T>,
    meter: &Meter,
    moves: impl Fn(&Meter) -> bool,
) -> Slice<T> {
    let ended = poll_fn(|cx| match meter.poll(&mut call, cx) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending if moves(meter) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    match ended.await {
        Some(ended) => Slice::Ended(ended),
        None => Slice::Paused(call),
    }
}

/// A call nobody waits for any longer is ended at its next tick.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, tokio::task::JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// On Linux a niceness belongs to a thread, and a thread has an id like a
/// process's.
pub(super) fn lower_priority(niceness: i32) {
    let thread = rustix::thread::gettid();
    if let Err(error) = rustix::process::setpriority_process(Some(thread), niceness) {
        tracing::warn!(%error, niceness, "a thread stays at ordinary priority");
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn meter(first_slice_ms: u32, deadline_ms: u64) -> Arc<Meter> {
        let settings = Settings { first_slice_ms, ..Settings::default() };
        let turn = settings.max_turn;
        Arc::new(Meter::new(&settings, Duration::from_millis(deadline_ms), None, turn))
    }

    /// Computes for a millisecond at a time, and says on which thread it did
    /// the last of it.
    async fn compute(meter: Arc<Meter>, ticks: u32, holds_turn: bool) -> String {
        for _ in 0..ticks {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(1) {}
            match meter.tick(holds_turn) {
                UpdateDeadline::YieldCustom(_, turn) => turn.await,
                UpdateDeadline::Continue(_) => {}
                _ => break,
            }
        }
        std::thread::current().name().unwrap_or_default().to_owned()
    }

    async fn run(ticks: u32, meter: Arc<Meter>, places: usize) -> Result<String, Lost> {
        let overstayers = Overstayers::start("overstayers", 19).unwrap();
        let call = compute(meter.clone(), ticks, false).boxed();
        overstayers.run(call, meter, &Arc::new(Semaphore::new(places))).await
    }

    #[tokio::test]
    async fn a_quick_call_stays_where_it_is() {
        assert_ne!(run(1, meter(50, 1000), 1).await.unwrap(), "overstayers");
    }

    #[tokio::test]
    async fn a_long_call_moves_over_and_ends_there() {
        assert_eq!(run(20, meter(5, 5000), 1).await.unwrap(), "overstayers");
    }

    #[tokio::test]
    async fn a_long_call_comes_back_while_it_keeps_others_from_writing() {
        let (meter, overstayers) = (meter(5, 5000), Overstayers::start("overstayers", 19).unwrap());
        let clock = meter.clone();
        let call = async move {
            let mut threads = Vec::new();
            for holds_turn in [true, false, true] {
                threads.push(compute(clock.clone(), 20, holds_turn).await);
            }
            threads
        };
        let places = Arc::new(Semaphore::new(1));
        let threads = overstayers.run(call.boxed(), meter, &places).await.unwrap();
        let aside = threads.iter().map(|name| name == "overstayers").collect::<Vec<_>>();
        assert_eq!(aside, [false, true, false]);
    }

    #[tokio::test]
    async fn without_a_place_a_long_call_is_given_up() {
        assert!(matches!(run(20, meter(5, 5000), 0).await, Err(Lost::Overloaded)));
    }

    #[tokio::test]
    async fn what_the_host_computes_for_a_call_runs_elsewhere_and_is_charged() {
        let overstayers = Overstayers::start("overstayers", 19).unwrap();
        let busy = || {
            let begun = processor_ns();
            while processor_ns() - begun < 5_000_000 {}
            std::thread::current().name().unwrap_or_default().to_owned()
        };
        let (thread, ran) = overstayers.compute(busy).await.unwrap();
        assert_eq!(thread, "overstayers-compute");
        assert!(ran >= Duration::from_millis(5), "{ran:?}");
        let meter = meter(50, 1000);
        meter.add(ran);
        assert_eq!(meter.ran(), ran);
    }

    #[test]
    fn waiting_for_the_processor_is_not_running() {
        let tick = Duration::from_millis(1);
        let long_ago = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        assert_eq!(Clock::Wall(long_ago).ran(tick), tick);
        assert!(matches!(Clock::start(0), Clock::Wall(_)));
        assert!(matches!(Clock::start(1), Clock::Thread(_)));
    }

    #[tokio::test]
    async fn waiting_for_the_host_is_not_running() {
        let meter = meter(5, 5000);
        let clock = meter.clone();
        let waiting = async move {
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_millis(2)).await;
                clock.tick(false);
            }
            std::thread::current().name().unwrap_or_default().to_owned()
        };
        let overstayers = Overstayers::start("overstayers", 19).unwrap();
        let places = Arc::new(Semaphore::new(1));
        assert_ne!(overstayers.run(waiting.boxed(), meter, &places).await.unwrap(), "overstayers");
    }

    #[tokio::test]
    async fn a_call_that_does_not_notice_its_deadline_is_given_up() {
        let meter = meter(0, 20);
        let clock = meter.clone();
        let stubborn = async move {
            clock.tick(false);
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(1) {}
            tokio::task::yield_now().await;
            std::future::pending::<()>().await;
        };
        let overstayers = Overstayers::start("overstayers", 19).unwrap();
        let places = Arc::new(Semaphore::new(1));
        let ended = overstayers.run(stubborn.boxed(), meter, &places).await;
        assert!(matches!(ended, Err(Lost::Deadline)));
    }
}
