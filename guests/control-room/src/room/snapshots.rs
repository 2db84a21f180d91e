//! Snapshots of the control room: counts of findings by state, and the activity of a time window.

use std::collections::BTreeMap;

use area_sdk::prelude::*;
use area_sdk::text::name;
use area_sdk::{DocumentError, Scope, Value};

use super::CALCULATION;
use super::activity::{ActivitySummary, TimeSpan};
use crate::decimal::{fixed, quotient};
use crate::finding::Finding;
use crate::severity::Severity;
use crate::state::FindingState;
use crate::transition::StoredTransition;

/// A time window of a control room's snapshot; it ends now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Window")]
enum TimeWindowLength {
    #[serde(rename = "24h")]
    Day,
    #[serde(rename = "7d")]
    Week,
    #[serde(rename = "30d")]
    Month,
}

impl TimeWindowLength {
    const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    fn seconds(self) -> i64 {
        match self {
            Self::Day => 86_400,
            Self::Week => 7 * 86_400,
            Self::Month => 30 * 86_400,
        }
    }
}

type CountsByName = BTreeMap<String, u64>;

/// Number of the workspace's findings by state, severity and impact, and the activity of one time
/// window, at one time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Snapshot")]
pub(super) struct ControlRoomSnapshot {
    architecture_impact_counts: CountsByName,
    pub(super) as_of: Timestamp,
    calculation_version: String,
    counts: CountsByName,
    freshness_percent: Option<String>,
    pub(super) id: Uuid,
    mttr_hours: Option<String>,
    recurring_count: u64,
    score: String,
    severity_counts: CountsByName,
    /// Number of transitions stored in the workspace when the snapshot was computed.
    source_transition_version: u64,
    time_to_decision_hours: Option<String>,
    window: TimeWindowLength,
}

/// A snapshot of the control room, as stored by a rebuild.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredSnapshot {
    #[serde(flatten)]
    pub(super) snapshot: ControlRoomSnapshot,
}

document!(StoredSnapshot, "snapshots");

impl ControlRoomSnapshot {
    /// Returns the stored snapshot (`kept`) if its content is equal, so that it keeps its id and
    /// `as_of`; otherwise this one.
    fn unless_kept(self, kept: Option<Self>) -> Self {
        match kept {
            Some(kept) if kept == (Self { id: kept.id, as_of: kept.as_of, ..self.clone() }) => kept,
            _ => self,
        }
    }
}

/// Returns the activity in each time window, shortest window first.
pub(super) fn activities(scope: &Scope) -> Result<[ActivitySummary; 3], DocumentError> {
    let mut activities = [ActivitySummary::default(); 3];
    let (mut so_far, mut until) = (ActivitySummary::default(), 0);
    for (window, activity) in TimeWindowLength::ALL.iter().zip(&mut activities) {
        let span = TimeSpan { from: window.seconds(), until };
        so_far = so_far.and(ActivitySummary::of(scope, span)?);
        (*activity, until) = (so_far, span.from);
    }
    Ok(activities)
}

/// Computes one snapshot for each time window; one whose content did not change is the stored one.
pub(super) fn compute(
    scope: &Scope,
    activities: [ActivitySummary; 3],
) -> Result<Vec<ControlRoomSnapshot>, DocumentError> {
    let finding_counts = FindingCounts::of(scope)?;
    let stale = stale(scope)?;
    let snapshot = |((window, activity), stale): ((TimeWindowLength, ActivitySummary), u64)| {
        let kept = scope.documents::<StoredSnapshot>().query();
        let kept = kept.equals("window", name(&window)).first()?;
        let kept = kept.map(|kept| kept.value.snapshot);
        Ok(finding_counts.snapshot(scope, window, activity, stale).unless_kept(kept))
    };
    TimeWindowLength::ALL.into_iter().zip(activities).zip(stale).map(snapshot).collect()
}

/// Returns, for each time window, the number of open findings that no audit reported within the
/// window. Each range of time is counted once, starting with the oldest, so that findings of
/// recurring audits are not read.
fn stale(scope: &Scope) -> Result<[u64; 3], DocumentError> {
    let mut all = [0; 3];
    let (mut so_far, mut from) = (0, None);
    for (window, stale) in TimeWindowLength::ALL.iter().zip(&mut all).rev() {
        let until: Value = scope.now().plus_seconds(-window.seconds()).into();
        let open = scope.documents::<Finding>().query().equals("open", true);
        so_far += open.range("last_seen_at", from, Some(until.clone())).count()?;
        (*stale, from) = (so_far, Some(until));
    }
    Ok(all)
}

/// Numbers of the workspace's findings that do not depend on a time window.
struct FindingCounts {
    counts: CountsByName,
    open_by_severity: CountsByName,
    open_by_impact: CountsByName,
    open: u64,
    recurring: u64,
    transitions: u64,
}

impl FindingCounts {
    fn of(scope: &Scope) -> Result<Self, DocumentError> {
        let fields = ["state", "risk_severity", "architecture_impact", "recurring"];
        let groups = scope.documents::<Finding>().query().count_by(&fields)?;
        let severities = || Severity::ALL.iter().map(|one| (name(one), 0)).collect();
        let overdue = scope.documents::<Finding>().query().equals("open", true);
        let overdue = overdue.range("sla_due_at", None, Some(scope.now().into())).count()?;
        let mut finding_counts = Self {
            counts: FindingState::ALL.iter().map(|one| (name(one), 0)).collect(),
            open_by_severity: severities(),
            open_by_impact: severities(),
            open: 0,
            recurring: 0,
            transitions: scope.documents::<StoredTransition>().query().count()?,
        };
        let total = groups.iter().map(|(_, count)| count).sum();
        let open_states: Vec<String> =
            FindingState::ALL.iter().filter(|state| state.is_open()).map(name).collect();
        for (values, count) in &groups {
            finding_counts.add(values, *count, &open_states);
        }
        finding_counts.counts.insert("total".to_owned(), total);
        finding_counts.counts.insert("open".to_owned(), finding_counts.open);
        finding_counts.counts.insert("overdue".to_owned(), overdue);
        Ok(finding_counts)
    }

    /// Adds the number of findings with these values of state, severity, impact and recurrence.
    /// `open_states` has the names of the states in which a finding is open.
    fn add(&mut self, values: &[Value], count: u64, open_states: &[String]) {
        let [Value::Text(state), Value::Text(severity), Value::Text(impact), recurring] = values
        else {
            return;
        };
        *self.counts.entry(state.clone()).or_default() += count;
        if open_states.contains(state) {
            *self.open_by_severity.entry(severity.clone()).or_default() += count;
            *self.open_by_impact.entry(impact.clone()).or_default() += count;
            self.open += count;
        }
        if *recurring == Value::Boolean(true) {
            self.recurring += count;
        }
    }

    /// Returns the control room's snapshot for a time window. `stale` is the number of open
    /// findings that no audit reported within the window.
    fn snapshot(
        &self,
        scope: &Scope,
        window: TimeWindowLength,
        activity: ActivitySummary,
        stale: u64,
    ) -> ControlRoomSnapshot {
        let fresh = self.open.saturating_sub(stale);
        ControlRoomSnapshot {
            architecture_impact_counts: self.open_by_impact.clone(),
            as_of: scope.now(),
            calculation_version: CALCULATION.to_owned(),
            counts: self.counts_with(activity),
            freshness_percent: quotient(signed(fresh) * 100, signed(self.open), 2),
            id: scope.new_id(),
            mttr_hours: activity.verified.mean_hours(),
            recurring_count: self.recurring,
            score: self.score(),
            severity_counts: self.open_by_severity.clone(),
            source_transition_version: self.transitions,
            time_to_decision_hours: activity.decided.mean_hours(),
            window,
        }
    }

    /// Returns the counts of findings by state together with the activity in a time window.
    fn counts_with(&self, activity: ActivitySummary) -> CountsByName {
        let mut counts = self.counts.clone();
        counts.extend([
            ("window_created".to_owned(), activity.created),
            ("window_decided".to_owned(), activity.decided.count.unsigned_abs()),
            ("window_reopened".to_owned(), activity.reopened),
            ("window_verified".to_owned(), activity.verified.count.unsigned_abs()),
        ]);
        counts
    }

    /// Returns the score of the control room, 100 / (1 + w / 100), where w is the sum of the
    /// weights of the open findings.
    fn score(&self) -> String {
        let half_weights = [
            (Severity::Critical, 20),
            (Severity::High, 10),
            (Severity::Medium, 4),
            (Severity::Low, 1),
        ];
        let weight: i64 = half_weights
            .iter()
            .map(|(severity, weight)| {
                signed(self.open_by_severity.get(&name(severity)).copied().unwrap_or(0)) * weight
            })
            .sum();
        quotient(20_000, 200 + weight, 2).unwrap_or_else(|| fixed(0, 2))
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX / 1000)
}
