//! Mean durations of transitions. The transitions are not read: the database counts how often each
//! duration occurs.

use area_sdk::{DocumentError, Query, Scope, Value};

use crate::decimal::hours;
use crate::transition::StoredTransition;

/// Sum, in seconds, and number of some durations, from which their mean is computed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct DurationTotal {
    pub(super) count: i64,
    seconds: i64,
}

impl DurationTotal {
    /// Returns sum and number of the durations of the transitions that `narrow` selects. The
    /// database counts whole hours and remaining seconds separately, because each has at most a few
    /// thousand different values, while every transition may have another duration.
    pub(super) fn of<'a>(
        scope: &'a Scope,
        narrow: impl Fn(Query<'a, StoredTransition>) -> Query<'a, StoredTransition>,
    ) -> Result<Self, DocumentError> {
        let query = || narrow(scope.documents::<StoredTransition>().query());
        let whole = query().count_by(&["elapsed_hours"])?;
        if whole.is_empty() {
            return Ok(Self::default());
        }
        let beyond = Self::sum(query().count_by(&["elapsed_seconds"])?);
        let hours = Self::sum(whole);
        Ok(Self {
            count: hours.count,
            seconds: hours.seconds.saturating_mul(3600).saturating_add(beyond.seconds),
        })
    }

    /// Sums the values of groups, each multiplied by the number of times that it occurs.
    fn sum(groups: Vec<(Vec<Value>, u64)>) -> Self {
        groups.iter().fold(Self::default(), |sum, (values, count)| {
            let Some(Value::Integer(length)) = values.first() else { return sum };
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            sum.and(Self { count, seconds: length.saturating_mul(count) })
        })
    }

    /// Adds the sum and number of other durations to these.
    pub(super) fn and(self, others: Self) -> Self {
        Self {
            count: self.count.saturating_add(others.count),
            seconds: self.seconds.saturating_add(others.seconds),
        }
    }

    /// Returns the mean of the durations in hours; `None` if there are no durations.
    pub(super) fn mean_hours(self) -> Option<String> {
        hours(self.seconds, self.count)
    }

    /// Returns the hours by which these durations together are shorter than at the mean of the
    /// durations in an earlier time window; `None` if that has none.
    pub(super) fn saved_since(self, earlier: Self) -> Option<String> {
        // (E/e - C/c) * c, with a common divisor.
        let at_earlier_mean = earlier.seconds.checked_mul(self.count)?;
        let difference = at_earlier_mean.checked_sub(self.seconds.checked_mul(earlier.count)?)?;
        hours(difference, earlier.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_exact_and_savings_are_of_all_decisions() {
        let groups = vec![
            (vec![Value::Integer(3600)], 3),
            (vec![Value::Integer(7200)], 1),
            (vec![Value::Null], 9),
        ];
        let now = DurationTotal::sum(groups);
        assert_eq!(now.mean_hours().as_deref(), Some("1.2500"));
        let earlier = DurationTotal { count: 2, seconds: 4 * 3600 };
        assert_eq!(now.saved_since(earlier).as_deref(), Some("3.0000"));
        assert_eq!(earlier.saved_since(now).as_deref(), Some("-1.5000"));
        assert_eq!(DurationTotal::default().mean_hours(), None);
    }
}
