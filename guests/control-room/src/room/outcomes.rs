//! The outcomes: results of the last 30 days, compared with the 30 days before.

use area_sdk::prelude::*;
use area_sdk::text::name;
use area_sdk::{DocumentError, Scope};

use super::activity::{self, ActivitySummary, TimeSpan};
use crate::state::FindingState;
use crate::transition::StoredTransition;

/// Length of each of the two compared time windows, in seconds (30 days).
const WINDOW_SECONDS: i64 = 30 * 86_400;
/// Minimum number of users' decisions in each of the two time windows for a comparison.
const LEAST_DECISIONS: i64 = 20;

/// Whether both compared time windows have enough decisions of users.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum MeasurementStatus {
    /// At least one of the two time windows has fewer than 20 decisions.
    Measuring,
    /// Both time windows have at least 20 decisions.
    Measured,
}

/// Results of the work on findings in the last 30 days, compared with the 30 days before.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Outcomes")]
pub(super) struct OutcomesWithBaseline {
    baseline_review_time_hours: Option<String>,
    current_review_time_hours: Option<String>,
    decision_sample_size: i64,
    duplicates_collapsed: u64,
    false_positives_removed: u64,
    measurement_status: MeasurementStatus,
    remediation_speed_hours: Option<String>,
    review_time_saved_hours: Option<String>,
    verified_remediations: i64,
    window: String,
}

/// Computes the results of the last 30 days, compared with the 30 days before. `current` is the
/// activity of the last 30 days.
pub(super) fn compute(
    scope: &Scope,
    current: ActivitySummary,
) -> Result<OutcomesWithBaseline, DocumentError> {
    let earlier = TimeSpan { from: 2 * WINDOW_SECONDS, until: WINDOW_SECONDS };
    let (now, before) = (current.decided, activity::decided(scope, earlier)?);
    let by_people = |state: FindingState| {
        let all = scope.documents::<StoredTransition>().query();
        let some = all.equals("to_state", name(&state)).equals("by_person", true);
        TimeSpan { from: WINDOW_SECONDS, until: 0 }.narrow(some, scope.now()).count()
    };
    let measured = now.count >= LEAST_DECISIONS && before.count >= LEAST_DECISIONS;
    Ok(OutcomesWithBaseline {
        baseline_review_time_hours: before.mean_hours(),
        current_review_time_hours: now.mean_hours(),
        decision_sample_size: now.count,
        duplicates_collapsed: by_people(FindingState::Duplicate)?,
        false_positives_removed: by_people(FindingState::FalsePositive)?,
        measurement_status: if measured {
            MeasurementStatus::Measured
        } else {
            MeasurementStatus::Measuring
        },
        remediation_speed_hours: current.verified.mean_hours(),
        review_time_saved_hours: measured.then(|| now.saved_since(before)).flatten(),
        verified_remediations: current.verified.count,
        window: "30d".to_owned(),
    })
}
