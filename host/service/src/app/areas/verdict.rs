//! Decides whether a canary is worse than the live version, by the statistics of this process and
//! the operator's limits.

use crate::registry::{LatencySummary, TrialSideStats, TrialStats};
use assurance_core::config::CanaryRollbackConfig;

/// Compares the canary with the live version. Returns how the canary is worse, as the reason for
/// its end; `None` if it is not worse, or has too few calls.
pub(super) fn verdict(bounds: &CanaryRollbackConfig, figures: &TrialStats) -> Option<String> {
    let (candidate, live) = (figures.candidate.stats(), figures.live.stats());
    if fails_more(bounds, &candidate, &live) {
        return Some(format!(
            "{} of its {} calls failed, and {} of the live version's {}: \
             areas.canary.max_fault_rate_difference allows {} more",
            candidate.faults,
            candidate.calls,
            live.faults,
            live.calls,
            bounds.max_fault_rate_difference
        ));
    }
    candidate.operations.iter().find_map(|(operation, candidate)| {
        let live = live.operations.get(operation)?;
        let slower = || {
            format!(
                "the p99 of its {operation} is {:.0} ms, and the live version's {:.0} ms: \
                 areas.canary.max_p99_factor allows {} times as much",
                candidate.p99_ms, live.p99_ms, bounds.max_p99_factor
            )
        };
        is_slower(bounds, candidate, live).then(slower)
    })
}

/// Returns whether the canary's fault rate is too high. If the canary has had fewer than
/// `min_calls` calls, the missing ones count as successful. So many early faults end a canary at
/// once, and a single one does not.
fn fails_more(
    bounds: &CanaryRollbackConfig,
    candidate: &TrialSideStats,
    live: &TrialSideStats,
) -> bool {
    let enough = candidate.calls.max(bounds.min_calls.into());
    rate(candidate.faults, enough)
        > rate(live.faults, live.calls) + bounds.max_fault_rate_difference
}

/// Returns whether the canary's p99 latency of one operation is too high compared with the live
/// version's. Operations are compared separately, because a canary's workspaces may call other
/// operations than the rest. Both versions need `min_calls` calls for a meaningful p99.
fn is_slower(
    bounds: &CanaryRollbackConfig,
    candidate: &LatencySummary,
    live: &LatencySummary,
) -> bool {
    let both = candidate.calls.min(live.calls) >= bounds.min_calls.into();
    let bound = (live.p99_ms * bounds.max_p99_factor).max(bounds.min_p99_ms.into());
    both && candidate.p99_ms > bound
}

fn rate(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn calls(figures: &TrialStats, candidate: (u64, u64, u64), live: (u64, u64, u64)) {
        for (side, (calls, faults, ms)) in [(&figures.candidate, candidate), (&figures.live, live)]
        {
            for n in 0..calls {
                side.answered("list_notes", Duration::from_millis(ms), n < faults);
            }
        }
    }

    /// Returns the verdict for given calls of the canary and the live version; each is (number of
    /// calls, number of faults, latency in ms).
    fn said(candidate: (u64, u64, u64), live: (u64, u64, u64)) -> Option<String> {
        let figures = TrialStats::default();
        calls(&figures, candidate, live);
        verdict(&CanaryRollbackConfig::default(), &figures)
    }

    #[test]
    fn a_canary_that_fails_more_often_is_worse() {
        let told = said((100, 3, 1), (1_900, 2, 1)).unwrap();
        insta::assert_snapshot!(told);
        assert_eq!(said((100, 3, 1), (1_900, 60, 1)), None, "the live one fails as often");
    }

    #[test]
    fn many_faults_are_enough_at_once_and_one_says_nothing() {
        assert_eq!(said((1, 1, 1), (0, 0, 1)), None);
        assert!(said((3, 3, 1), (0, 0, 1)).is_some());
    }

    #[test]
    fn a_canary_that_is_slower_is_worse_once_both_have_shown_enough() {
        let told = said((100, 0, 400), (1_900, 0, 100)).unwrap();
        insta::assert_snapshot!(told);
        assert_eq!(said((99, 0, 400), (1_900, 0, 100)), None);
        assert_eq!(said((100, 0, 400), (99, 0, 100)), None);
        assert_eq!(said((100, 0, 40), (1_900, 0, 4)), None, "nobody waits for 40 ms");
    }
}
