//! Retry schedule of deliveries.

use std::time::UNIX_EPOCH;

use area_sdk::Timestamp;

/// Delays between consecutive attempts of a delivery, in seconds.
const DELAYS_SECONDS: [i64; STEPS as usize] =
    [5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600];

/// Number of delays between consecutive attempts of a delivery.
const STEPS: u32 = 9;

/// Maximum delay that is used from a receiver's `Retry-After`, in seconds; a longer one is
/// shortened.
const LONGEST_SECONDS: i64 = 24 * 3600;

/// Time without a success after which a subscription is disabled, in seconds.
pub(crate) const GIVE_UP_SECONDS: i64 = 120 * 3600;

/// Returns the time of a delivery's next attempt after this number of attempts; `None` after the
/// last. `jitter` from 0 to 4000 changes the delay by -20 % to +20 %. A later `Retry-After` of the
/// receiver takes precedence.
pub(crate) fn next_attempt(
    attempts: u32,
    now: Timestamp,
    jitter: u64,
    retry_after: Option<Timestamp>,
) -> Option<Timestamp> {
    let place = usize::try_from(attempts).ok()?.checked_sub(1)?;
    let delay_ms = DELAYS_SECONDS.get(place)? * 1000;
    let jitter = i64::try_from(jitter.min(4000)).unwrap_or_default() - 2000;
    let planned = now.plus_ms(delay_ms + delay_ms / 1000 * jitter / 10);
    let asked = retry_after.map(|asked| asked.min(now.plus_seconds(LONGEST_SECONDS)));
    Some(asked.map_or(planned, |asked| asked.max(planned)))
}

/// Returns the time of the next probe of an endpoint that failed this number of times. The last
/// delay repeats until the subscription is disabled.
pub(crate) fn next_probe(
    failures: u32,
    now: Timestamp,
    jitter: u64,
    retry_after: Option<Timestamp>,
) -> Timestamp {
    let step = failures.clamp(1, STEPS);
    next_attempt(step, now, jitter, retry_after).expect("a step of the schedule")
}

/// Parses `Retry-After` (RFC 9110, section 10.2.3): seconds or a date.
pub(crate) fn retry_after(value: &str, now: Timestamp) -> Option<Timestamp> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits that are no `i64` are a larger number.
        let seconds = value.parse().unwrap_or(i64::MAX);
        return Some(now.plus_seconds(seconds.min(LONGEST_SECONDS)));
    }
    http_date(value)
}

/// Parses any of the three date formats of RFC 9110, section 5.6.7.
fn http_date(value: &str) -> Option<Timestamp> {
    let date = httpdate::parse_http_date(value).ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(date.as_micros()).ok().map(Timestamp)
}

#[cfg(test)]
mod tests {
    use area_sdk::testing::START;

    use super::*;

    fn seconds(attempts: u32, jitter: u64, asked: Option<i64>) -> Option<i64> {
        let asked = asked.map(|seconds| START.plus_seconds(seconds));
        next_attempt(attempts, START, jitter, asked).map(|next| next.seconds_since(START))
    }

    #[test]
    fn the_schedule_is_standard_webhooks_with_a_fifth_of_jitter() {
        let middle: Vec<_> = (1..=10).map(|attempt| seconds(attempt, 2000, None)).collect();
        let hours = |hours: i64| Some(hours * 3600);
        let expected = [
            Some(5),
            Some(300),
            Some(1800),
            hours(2),
            hours(5),
            hours(10),
            hours(14),
            hours(20),
            hours(24),
            None,
        ];
        assert_eq!(middle, expected);
        assert_eq!((seconds(1, 0, None), seconds(1, 4000, None)), (Some(4), Some(6)));
        assert_eq!((seconds(9, 0, None), seconds(9, 4000, None)), (Some(69_120), Some(103_680)));
    }

    #[test]
    fn a_receiver_may_ask_for_later_but_not_for_earlier_or_never() {
        assert_eq!(seconds(1, 2000, Some(60)), Some(60));
        assert_eq!(seconds(2, 2000, Some(60)), Some(300));
        assert_eq!(seconds(1, 2000, Some(999_999)), Some(86_400));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let read = |value| retry_after(value, START).map(|at| at.to_string());
        assert_eq!(read("120"), Some(START.plus_seconds(120).to_string()));
        for long in ["86401", "9223372036854775808", "99999999999999999999999"] {
            assert_eq!(read(long), Some(START.plus_seconds(LONGEST_SECONDS).to_string()), "{long}");
        }
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(read(date).as_deref(), Some("1994-11-06T08:49:37.000000Z"), "{date}");
        }
        assert_eq!(read(""), None);
        for odd in ["soon", "-1", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Foo 1994 08:49:37 GMT"] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }
}
