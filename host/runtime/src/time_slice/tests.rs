//! Tests of time slices: which calls move to the low-priority thread, and how it is shared.

use futures::FutureExt as _;

use super::*;
use assurance_core::config::AreaCallLimits;

fn meter(first_slice_ms: u32, deadline_ms: u64) -> Arc<CallMeter> {
    let mut settings = Settings::default();
    settings.config.runtime.first_slice_ms = first_slice_ms;
    let limit = settings.call_limits(AreaCallLimits::default()).turn;
    let deadline = TimeLimit { time: Duration::from_millis(deadline_ms), setting: "a test's" };
    Arc::new(CallMeter::new(&settings, deadline, None, limit))
}

/// Computes for one millisecond at a time, and returns the name of the
/// thread that ran the last one.
async fn compute(meter: Arc<CallMeter>, ticks: u32, holds_write_lock: bool) -> String {
    for _ in 0..ticks {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(1) {}
        match meter.tick(holds_write_lock) {
            UpdateDeadline::YieldCustom(_, turn) => turn.await,
            UpdateDeadline::Continue(_) => {}
            _ => break,
        }
    }
    std::thread::current().name().unwrap_or_default().to_owned()
}

/// Runs a call with a low-priority thread of its own.
async fn execute<T: Send + 'static>(
    call: impl Future<Output = T> + Send + 'static,
    meter: Arc<CallMeter>,
    places: LongCallPlaces,
) -> Result<T, ForcedEndReason> {
    let executor = LowPriorityExecutor::start("long-calls", 19).unwrap();
    executor.run(call.boxed(), meter, &places).await
}

async fn run(ticks: u32, meter: Arc<CallMeter>, places: usize) -> Result<String, ForcedEndReason> {
    let call = compute(meter.clone(), ticks, false);
    execute(call, meter, LongCallPlaces::for_requests(places)).await
}

#[tokio::test]
async fn a_quick_call_stays_where_it_is() {
    assert_ne!(run(1, meter(50, 1000), 1).await.unwrap(), "long-calls");
}

#[tokio::test]
async fn a_long_call_moves_over_and_ends_there() {
    assert_eq!(run(20, meter(5, 5000), 1).await.unwrap(), "long-calls");
}

/// Yields at this number of ticks as a call with this processor time does.
async fn yield_at_ticks(ran: Duration, ticks: u32, count: Arc<AtomicU32>) {
    let meter = meter(5, 60_000);
    meter.add(ran);
    for _ in 0..ticks {
        if let UpdateDeadline::YieldCustom(_, turn) = meter.tick(false) {
            turn.await;
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_call_of_few_slices_waits_for_few_ticks_of_endless_calls() {
    let ticks = Arc::new(AtomicU32::new(0));
    for _ in 0..8 {
        tokio::spawn(yield_at_ticks(Duration::from_secs(1), u32::MAX, Arc::clone(&ticks)));
    }
    let short = yield_at_ticks(Duration::from_millis(6), 10, Arc::default());
    tokio::spawn(short).await.unwrap();
    // With round-robin scheduling, eight endless calls would get 80 ticks
    // during the short call's ten.
    assert!(ticks.load(Ordering::Relaxed) <= 8, "{ticks:?}");
}

#[tokio::test]
async fn a_long_call_comes_back_while_it_keeps_others_from_writing() {
    let meter = meter(5, 5000);
    let clock = meter.clone();
    let call = async move {
        let mut threads = Vec::new();
        for holds_write_lock in [true, false, true] {
            threads.push(compute(clock.clone(), 20, holds_write_lock).await);
        }
        threads
    };
    let threads = execute(call, meter, LongCallPlaces::for_requests(1)).await.unwrap();
    let aside = threads.iter().map(|name| name == "long-calls").collect::<Vec<_>>();
    assert_eq!(aside, [false, true, false]);
}

#[tokio::test]
async fn a_call_of_a_few_slices_needs_no_place() {
    assert_eq!(run(10, meter(5, 5000), 0).await.unwrap(), "long-calls");
}

#[tokio::test]
async fn without_a_place_a_long_call_is_given_up() {
    assert!(matches!(run(60, meter(5, 5000), 0).await, Err(ForcedEndReason::Overloaded)));
}

#[tokio::test]
async fn a_long_job_waits_for_a_place_until_its_deadline() {
    let executor = LowPriorityExecutor::start("long-calls", 19).unwrap();
    let places = LongCallPlaces::for_jobs(1);
    let held = places.take(&meter(5, 60_000)).await.unwrap();
    assert!(matches!(places.take(&meter(5, 0)).await, Err(ForcedEndReason::Deadline)));
    let meter = meter(5, 60_000);
    let free = async {
        while !meter.is_long() {
            tokio::task::yield_now().await;
        }
        drop(held);
    };
    // Long at its 20th tick, even if the machine is so busy that it computes little.
    meter.add(Duration::from_millis(20));
    let job = compute(meter.clone(), 60, false).boxed();
    let (ended, ()) = tokio::join!(executor.run(job, meter.clone(), &places), free);
    assert_eq!(ended.unwrap(), "long-calls");
}

#[tokio::test]
async fn a_job_that_keeps_others_from_writing_waits_for_no_place() {
    let meter = meter(5, 5000);
    let clock = meter.clone();
    let job = async move {
        for _ in 0..20 {
            if let UpdateDeadline::YieldCustom(_, turn) = clock.tick(false) {
                turn.await;
            }
        }
        // A host function computes, takes the write lock and waits for the database.
        clock.add(Duration::from_millis(20));
        tokio::task::yield_now().await;
        clock.tick(true);
    };
    let ended = execute(job, meter, LongCallPlaces::for_jobs(0)).await;
    assert!(ended.is_ok(), "{ended:?}");
}

#[tokio::test]
async fn what_the_host_computes_for_a_call_runs_elsewhere_and_is_charged() {
    let executor = LowPriorityExecutor::start("long-calls", 19).unwrap();
    let busy = || {
        let begun = processor_ns();
        while processor_ns() - begun < 5_000_000 {}
        std::thread::current().name().unwrap_or_default().to_owned()
    };
    let (thread, ran) = executor.compute(false, busy).await.unwrap();
    assert_eq!(thread, "long-calls-compute");
    let (thread, _) = executor.compute(true, busy).await.unwrap();
    assert_ne!(thread, "long-calls-compute", "others wait for the write lock");
    assert!(ran >= Duration::from_millis(5), "{ran:?}");
    let meter = meter(50, 1000);
    meter.add(ran);
    assert_eq!(meter.ran(), ran);
}

#[test]
fn waiting_for_the_processor_is_not_running() {
    let tick = Duration::from_millis(1);
    let long_ago = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
    assert_eq!(PollClock::Wall(long_ago).ran(tick), tick);
    assert!(matches!(PollClock::start(0), PollClock::Wall(_)));
    assert!(matches!(PollClock::start(1), PollClock::Thread(_)));
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
    let thread = execute(waiting, meter, LongCallPlaces::for_requests(1)).await.unwrap();
    assert_ne!(thread, "long-calls");
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
    let ended = execute(stubborn, meter, LongCallPlaces::for_requests(1)).await;
    assert!(matches!(ended, Err(ForcedEndReason::Deadline)));
}
