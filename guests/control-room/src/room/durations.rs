//! Mean durations of transitions, without reading them: the database groups
//! them by their length in seconds.

use area_sdk::{DocumentError, Query, Scope, Value};

use crate::decimal::hours;
use crate::transition::StoredTransition;

/// Transitions that are read where they have more lengths than a call may
/// count: the newest.
const SAMPLE: u32 = 1000;

/// Some durations, added up.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Durations {
    pub(super) count: i64,
    seconds: i64,
}

impl Durations {
    /// Of the transitions that `narrow` leaves.
    pub(super) fn of<'a>(
        scope: &'a Scope,
        narrow: impl Fn(Query<'a, StoredTransition>) -> Query<'a, StoredTransition>,
    ) -> Result<Self, DocumentError> {
        let query = || narrow(scope.documents::<StoredTransition>().query());
        match query().count_by(&["elapsed_seconds"]) {
            Ok(groups) => Ok(Self::sum(groups)),
            Err(DocumentError::LimitExceeded) => {
                let newest = query().descending("created_at").limit(SAMPLE).list()?;
                let each = newest.iter().map(|transition| transition.elapsed_seconds);
                Ok(Self { count: i64::from(SAMPLE), seconds: each.sum() })
            }
            Err(error) => Err(error),
        }
    }

    fn sum(groups: Vec<(Vec<Value>, u64)>) -> Self {
        groups.iter().fold(Self::default(), |sum, (values, count)| {
            let Some(Value::Integer(length)) = values.first() else { return sum };
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            Self {
                count: sum.count.saturating_add(count),
                seconds: sum.seconds.saturating_add(length.saturating_mul(count)),
            }
        })
    }

    /// Their mean; nothing where there are none.
    pub(super) fn mean_hours(self) -> Option<String> {
        hours(self.seconds, self.count)
    }

    /// How much less time so many took at this mean than at that of an earlier
    /// window.
    pub(super) fn saved_since(self, earlier: Self) -> Option<String> {
        // (E/e - C/c) * c, over a common divisor.
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
        let now = Durations::sum(groups);
        assert_eq!(now.mean_hours().as_deref(), Some("1.2500"));
        let earlier = Durations { count: 2, seconds: 4 * 3600 };
        assert_eq!(now.saved_since(earlier).as_deref(), Some("3.0000"));
        assert_eq!(earlier.saved_since(now).as_deref(), Some("-1.5000"));
        assert_eq!(Durations::default().mean_hours(), None);
    }
}
