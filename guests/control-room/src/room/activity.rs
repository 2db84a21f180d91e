//! Activity in time spans. The spans do not overlap and are added up to time windows, so that each
//! transition is counted once.

use area_sdk::prelude::*;
use area_sdk::text::name;
use area_sdk::{DocumentError, Query, Scope};

use super::durations::DurationTotal;
use crate::state::FindingState;
use crate::transition::StoredTransition;

/// Start and end of a time span, in seconds before now; `until` is 0 for a span that ends now.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeSpan {
    pub(super) from: i64,
    pub(super) until: i64,
}

impl TimeSpan {
    /// Restricts a query to the transitions within this time span.
    pub(super) fn narrow<'a>(
        self,
        query: Query<'a, StoredTransition>,
        now: Timestamp,
    ) -> Query<'a, StoredTransition> {
        let below = (self.until > 0).then(|| now.plus_seconds(-self.until).into());
        query.range("created_at", Some(now.plus_seconds(-self.from).into()), below)
    }
}

/// Counts and durations of the transitions of findings within a time span.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct ActivitySummary {
    /// Time from the beginning of a finding's lifecycle to a user's first decision: sum and number.
    pub(super) decided: DurationTotal,
    pub(super) verified: DurationTotal,
    pub(super) created: u64,
    pub(super) reopened: u64,
}

impl ActivitySummary {
    pub(super) fn of(scope: &Scope, span: TimeSpan) -> Result<Self, DocumentError> {
        let entered = |state: FindingState| {
            let all = scope.documents::<StoredTransition>().query();
            span.narrow(all.equals("to_state", name(&state)), scope.now()).count()
        };
        let verified = name(&FindingState::Verified);
        Ok(Self {
            decided: decided(scope, span)?,
            verified: DurationTotal::of(scope, |query| {
                span.narrow(query.equals("to_state", &verified), scope.now())
            })?,
            created: entered(FindingState::New)?,
            reopened: entered(FindingState::Reopened)?,
        })
    }

    /// Adds the activity of another time span, which must not overlap.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            decided: self.decided.and(other.decided),
            verified: self.verified.and(other.verified),
            created: self.created + other.created,
            reopened: self.reopened + other.reopened,
        }
    }
}

/// Returns the durations from the beginning of a finding's lifecycle to a user's first decision,
/// for decisions within the time span.
pub(super) fn decided(scope: &Scope, span: TimeSpan) -> Result<DurationTotal, DocumentError> {
    DurationTotal::of(scope, |query| span.narrow(query.equals("decision", true), scope.now()))
}
