//! Outcomes: what the last 30 days came to, held against the 30 days before.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Query, Scope};

use super::durations::Durations;
use crate::state::State;
use crate::transition::StoredTransition;

/// The length of a window.
const WINDOW_SECONDS: i64 = 30 * 86_400;
/// Decisions that both windows need before they are compared.
const LEAST_DECISIONS: i64 = 20;

/// Are there decisions enough to compare?
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum MeasurementStatus {
    /// Not yet.
    Measuring,
    /// Twenty in both windows.
    Measured,
}

/// What the last 30 days came to.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct Outcomes {
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

/// Transitions of a window that begins and ends so many seconds ago.
pub(super) fn within<'a>(
    query: Query<'a, StoredTransition>,
    now: Timestamp,
    (from, to): (i64, i64),
) -> Query<'a, StoredTransition> {
    let below = (to > 0).then(|| now.plus_seconds(-to).into());
    query.range("created_at", Some(now.plus_seconds(-from).into()), below)
}

pub(super) fn compute(scope: &Scope) -> Result<Outcomes, DocumentError> {
    let now = scope.now();
    let current = (WINDOW_SECONDS, 0);
    let decided =
        |window| Durations::of(scope, |query| within(query.equals("decision", true), now, window));
    let (now_decided, before_decided) =
        (decided(current)?, decided((2 * WINDOW_SECONDS, WINDOW_SECONDS))?);
    let by_people = |state: State| {
        let all = scope.documents::<StoredTransition>().query();
        let some = all.equals("to_state", state.as_str()).equals("by_person", true);
        within(some, now, current).count()
    };
    let verified = verified(scope, current)?;
    let measured = now_decided.count >= LEAST_DECISIONS && before_decided.count >= LEAST_DECISIONS;
    Ok(Outcomes {
        baseline_review_time_hours: before_decided.mean_hours(),
        current_review_time_hours: now_decided.mean_hours(),
        decision_sample_size: now_decided.count,
        duplicates_collapsed: by_people(State::Duplicate)?,
        false_positives_removed: by_people(State::FalsePositive)?,
        measurement_status: match measured {
            true => MeasurementStatus::Measured,
            false => MeasurementStatus::Measuring,
        },
        remediation_speed_hours: verified.mean_hours(),
        review_time_saved_hours: if measured {
            now_decided.saved_since(before_decided)
        } else {
            None
        },
        verified_remediations: verified.count,
        window: "30d".to_owned(),
    })
}

/// Verifications of a window.
pub(super) fn verified(scope: &Scope, window: (i64, i64)) -> Result<Durations, DocumentError> {
    let verified = State::Verified.as_str();
    let now = scope.now();
    Durations::of(scope, |query| within(query.equals("to_state", verified), now, window))
}
