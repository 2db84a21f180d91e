//! Backoff between two attempts of a job.

use assurance_core::config::LaneConfig;

/// Returns the wait after a job's failed attempt (1 is the first), in milliseconds. The lane's
/// first wait doubles with each attempt up to the lane's maximum. `jitter` in 0.0..1.0 spreads the
/// result by ±20 %, so that jobs that failed together are not retried together.
pub(super) fn delay_ms(share: LaneConfig, attempt: u32, jitter: f64) -> i64 {
    let doublings = attempt.saturating_sub(1).min(31);
    let doubled = u64::from(share.backoff_first_ms) << doublings;
    let full = doubled.min(u64::from(share.backoff_max_ms));
    (full as f64 * (0.8 + 0.4 * jitter)) as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::delay_ms;
    use assurance_core::config::{LaneConfig, LanesConfig};

    fn share(backoff_first_ms: u32, backoff_max_ms: u32) -> LaneConfig {
        LaneConfig { backoff_first_ms, backoff_max_ms, ..LanesConfig::default().maintenance }
    }

    #[test]
    fn doubles_up_to_its_cap() {
        let middle = [1, 2, 3, 4, 5, u32::MAX].map(|n| delay_ms(share(1_000, 6_000), n, 0.5));
        assert_eq!(middle, [1_000, 2_000, 4_000, 6_000, 6_000, 6_000]);
    }

    proptest! {
        #[test]
        fn stays_within_a_fifth_of_the_capped_wait(
            first in 1_u32.., cap in 1_u32.., attempt in 0_u32.., jitter in 0.0_f64..1.0,
        ) {
            let delay = delay_ms(share(first, cap), attempt, jitter) as f64;
            let doubled = f64::from(first) * 2_f64.powi(attempt.saturating_sub(1).min(31) as i32);
            let full = doubled.min(f64::from(cap));
            prop_assert!(delay >= (full * 0.8).floor() && delay <= full * 1.2);
        }

        #[test]
        fn never_shrinks_from_one_attempt_to_the_next(
            first in 1_u32.., cap in 1_u32.., attempt in 1_u32..100, jitter in 0.0_f64..1.0,
        ) {
            let share = share(first, cap);
            prop_assert!(delay_ms(share, attempt, jitter) <= delay_ms(share, attempt + 1, jitter));
        }
    }
}
