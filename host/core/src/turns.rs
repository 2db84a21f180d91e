//! For tests: measures how long a task blocks its executor thread.

use std::pin::pin;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Longest processor time of one poll that tests accept. Tests run unoptimized
/// code, so the limit is generous; the faults that they look for take seconds.
pub const LONGEST_TURN: Duration = Duration::from_millis(50);

/// Runs a future on an executor of its own. Returns its result, and the longest
/// time in which no other task was polled. The time is processor time of this
/// thread, so other load on the machine does not matter.
pub fn longest_turn<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let mut longest = Duration::ZERO;
    let done = runtime.expect("an executor").block_on(async {
        let mut work = pin!(work);
        let mut last = ran();
        loop {
            let done = tokio::select! {
                biased;
                done = &mut work => Some(done),
                () = tokio::task::yield_now() => None,
            };
            let now = ran();
            longest = longest.max(now.saturating_sub(last));
            last = now;
            if let Some(done) = done {
                break done;
            }
        }
    });
    (done, longest)
}

/// Returns the processor time that this thread has used.
fn ran() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_as_long_as_nobody_else_gets_one() {
        let busy = |time: Duration| {
            let begun = ran();
            while ran() - begun < time {}
        };
        let ms = Duration::from_millis;
        let ((), longest) = longest_turn(async { busy(ms(80)) });
        assert!((ms(80)..ms(160)).contains(&longest), "{longest:?}");
        let ((), longest) = longest_turn(async {
            for time in [1, 20, 1] {
                busy(ms(time));
                tokio::task::yield_now().await;
            }
        });
        assert!((ms(20)..ms(100)).contains(&longest), "{longest:?}");
    }
}
