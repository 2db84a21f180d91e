//! Repeats a check until it succeeds or a time limit has passed.

use std::fmt::Display;
use std::panic::Location;
use std::time::{Duration, Instant};

use tokio::time::Sleep;

/// Limit of [`until`]; longer than what tests await takes on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(180);

/// Pause between two checks.
const PAUSE: Duration = Duration::from_millis(50);

/// Result of a check: `bool`, `Option`, or a `Result` whose error is the state that the check saw.
pub trait CheckResult {
    /// Value that is awaited.
    type Value;

    /// Returns the awaited value, or the state for the message of a failed test.
    ///
    /// # Errors
    /// The check has not succeeded yet.
    fn into_result(self) -> Result<Self::Value, String>;
}

impl CheckResult for bool {
    type Value = ();

    fn into_result(self) -> Result<(), String> {
        self.then_some(()).into_result()
    }
}

impl<T> CheckResult for Option<T> {
    type Value = T;

    fn into_result(self) -> Result<T, String> {
        self.ok_or_else(|| "not yet".to_owned())
    }
}

impl<T, S: Display> CheckResult for Result<T, S> {
    type Value = T;

    fn into_result(self) -> Result<T, String> {
        self.map_err(|state| format!("{state:#}"))
    }
}

/// Repeats a check until it succeeds. `what` describes the awaited state.
///
/// Tasks that are spawned cannot use this, because the compiler does not prove that the future of
/// an async closure is `Send`.
///
/// # Panics
/// The check does not succeed within three minutes.
#[track_caller]
pub fn until<R: CheckResult>(
    what: impl Display,
    check: impl AsyncFnMut() -> R,
) -> impl Future<Output = R::Value> {
    within(LIMIT, what, check)
}

/// Repeats a check like [`until`], with another limit.
///
/// # Panics
/// The check does not succeed in time.
#[track_caller]
pub fn within<R: CheckResult>(
    limit: Duration,
    what: impl Display,
    mut check: impl AsyncFnMut() -> R,
) -> impl Future<Output = R::Value> {
    let deadline = Deadline::after(limit);
    async move {
        loop {
            match check().await.into_result() {
                Ok(value) => return value,
                Err(state) => deadline.pause(&what, &state).await,
            }
        }
    }
}

/// End of a loop that repeats a check.
#[derive(Debug)]
pub(crate) struct Deadline {
    caller: &'static Location<'static>,
    begun: Instant,
    limit: Duration,
}

impl Deadline {
    /// Returns the deadline of a loop that begins now.
    #[track_caller]
    pub(crate) fn after(limit: Duration) -> Self {
        Self { caller: Location::caller(), begun: Instant::now(), limit }
    }

    /// Returns the pause before the next check.
    ///
    /// # Panics
    /// The limit has passed.
    pub(crate) fn pause(&self, what: &impl Display, state: &impl Display) -> Sleep {
        let Self { caller, begun, limit } = self;
        assert!(begun.elapsed() < *limit, "{caller}: not within {limit:?}: {what}: {state:#}");
        tokio::time::sleep(PAUSE)
    }
}
