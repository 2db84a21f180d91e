//! Calculates delays after failed attempts.

use assurance_core::config::SignInProtectionConfig;
use assurance_core::domain::time::Timestamp;
use assurance_store::sign_in_failures::SignInFailures;

/// Counts an attempt in a failure counter as failed in advance, so that
/// concurrent attempts are all counted. An attempt that is too early is refused
/// with the time from which one is accepted.
pub(super) fn count(
    known: &SignInFailures,
    free: u32,
    settings: &SignInProtectionConfig,
    now: Timestamp,
) -> Result<SignInFailures, Timestamp> {
    if known.blocked_until > now {
        return Err(known.blocked_until);
    }
    let forgotten = now.ms_since(known.last_at) >= i64::from(settings.forget_minutes) * 60_000;
    let count = if forgotten { 1 } else { known.count + 1 };
    Ok(SignInFailures {
        count,
        last_at: now,
        blocked_until: now.plus_ms(wait_ms(count, free, settings)),
    })
}

/// Counts a failure towards a daily limit of `most`. The day begins with the
/// first failure. Beyond the limit, returns the end of the day as an error.
pub(super) fn count_daily(
    known: &SignInFailures,
    most: u32,
    now: Timestamp,
) -> Result<SignInFailures, Timestamp> {
    let end = known.last_at.plus_ms(DAY_MS);
    if known.count == 0 || now >= end {
        return Ok(SignInFailures { count: 1, last_at: now, blocked_until: Timestamp(0) });
    }
    if known.count >= i64::from(most) {
        return Err(end);
    }
    Ok(SignInFailures { count: known.count + 1, ..*known })
}

/// Milliseconds of a day.
pub(super) const DAY_MS: i64 = 86_400_000;

/// Returns the delay before the next attempt, in milliseconds: 0 for the free
/// attempts, then doubling up to the maximum.
fn wait_ms(count: i64, free: u32, settings: &SignInProtectionConfig) -> i64 {
    let beyond = count - i64::from(free);
    if beyond < 0 {
        return 0;
    }
    let factor = 1_i64 << beyond.min(30);
    let seconds = i64::from(settings.backoff_first_seconds) * factor;
    seconds.min(i64::from(settings.backoff_max_seconds)) * 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_000_000);
    const NONE: SignInFailures =
        SignInFailures { count: 0, last_at: NOW, blocked_until: Timestamp(0) };

    #[test]
    fn the_wait_doubles_after_the_free_failures_up_to_the_longest() {
        let settings = SignInProtectionConfig::default();
        let waits: Vec<i64> = (1..=20).map(|count| wait_ms(count, 5, &settings) / 1_000).collect();
        let expected =
            [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900, 900, 900, 900];
        assert_eq!(waits, expected);
    }

    #[test]
    fn a_day_lets_its_number_through_and_then_begins_anew() {
        let first = count_daily(&NONE, 2, NOW).unwrap();
        let second = count_daily(&first, 2, NOW.plus_ms(5)).unwrap();
        assert_eq!((second.count, second.last_at), (2, NOW));
        assert_eq!(count_daily(&second, 2, NOW.plus_ms(9)), Err(NOW.plus_ms(DAY_MS)));
        let tomorrow = count_daily(&second, 2, NOW.plus_ms(DAY_MS)).unwrap();
        assert_eq!((tomorrow.count, tomorrow.last_at), (1, NOW.plus_ms(DAY_MS)));
    }

    #[test]
    fn one_place_lets_310_guesses_a_day_through_at_most() {
        let settings = SignInProtectionConfig::default();
        let forget = i64::from(settings.forget_minutes) * 60;
        // A number of attempts in a row, each as early as possible, then an
        // hour without attempts.
        let bursts = (1..200_i64).map(|length| {
            let waits: i64 = (1..length).map(|count| wait_ms(count, 5, &settings) / 1_000).sum();
            length * (86_400 / (waits + forget).max(1) + 1)
        });
        let without_a_pause = 5 + 10 + 86_400 / i64::from(settings.backoff_max_seconds);
        assert!(bursts.chain([without_a_pause]).max().unwrap() <= 310);
    }

    #[test]
    fn an_early_attempt_is_refused_and_not_counted() {
        let blocked = SignInFailures { count: 9, last_at: NOW, blocked_until: NOW.plus_ms(4_000) };
        assert_eq!(
            count(&blocked, 5, &SignInProtectionConfig::default(), NOW.plus_ms(3_999)),
            Err(NOW.plus_ms(4_000))
        );
        let counted =
            count(&blocked, 5, &SignInProtectionConfig::default(), NOW.plus_ms(4_000)).unwrap();
        assert_eq!(counted.count, 10);
    }

    #[test]
    fn failures_are_forgotten_after_a_quiet_hour() {
        let old = SignInFailures { count: 9, ..NONE };
        let later = NOW.plus_ms(3_600_000);
        assert_eq!(count(&old, 5, &SignInProtectionConfig::default(), later).unwrap().count, 1);
    }
}
